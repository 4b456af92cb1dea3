"""A browser whose requests a test client answers: real pages and styles, inside the test's own transaction."""

import asyncio
import mimetypes
from contextlib import contextmanager
from urllib.parse import urlsplit

from django.contrib.staticfiles import finders

SITE = "http://127.0.0.1:8000"  # that of the settings: a secure context, which may frame the widget


@contextmanager
def no_loop():
    """Let views of this thread run coroutines of their own beside Playwright, which keeps a loop in it."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


def answer_from(context, client, ready=None):
    """Let ``client`` answer what the tabs of ``context`` ask for; sockets open and stay silent.

    ``ready`` has responses by address that are given in its place. Rows must be made before Playwright begins (use
    ``launched``, not the fixture): Django's connection in a running loop is another, and sees no open transaction.
    """

    def answer(route):
        asked = urlsplit(route.request.url)
        if asked.path.startswith("/static/"):
            path = finders.find(asked.path.removeprefix("/static/"))
            route.fulfill(path=path, content_type=mimetypes.guess_type(path)[0])
            return
        headers = {name: value for name, value in route.request.headers.items() if name != "cookie"}
        sent = {"data": route.request.post_data_buffer or b"", "content_type": headers.pop("content-type", "")}
        address = f"{asked.path}?{asked.query}" if asked.query else asked.path
        with no_loop():
            got = (ready or {}).get(address) or client.generic(route.request.method, address, headers=headers, **sent)
        kept = {name: value for name, value in got.headers.items() if name.lower() != "content-length"}
        route.fulfill(status=got.status_code, headers=kept, body=got.getvalue())

    context.route("**/*", answer)
    context.route_web_socket("**/*", lambda socket: None)
