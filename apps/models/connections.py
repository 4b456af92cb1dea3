"""Open connections to model endpoints, one set for each event loop.

Addresses that a workspace gave are connected to through the outbound guard; those of the operator and
of the environment may be private.
"""

import asyncio
import importlib
import threading
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

from apps.models.chat import ResolvedModel

if TYPE_CHECKING:
    import aiohttp
    import httpx2
    import openai

CONNECT_S = 10.0
FIRST_BYTE_S = 120.0  # a thinking model may be silent for long before its first token
BETWEEN_BYTES_S = 60.0
WHOLE_CALL_S = 180.0  # calls that are not streamed
WHOLE_STREAM_S = 3600.0  # streams, however slowly they drip
WHOLE_CALL_BYTES = 2**26  # 64 embeddings of 4096 numbers are 6 MB

_sessions: dict[tuple[asyncio.AbstractEventLoop, bool], "aiohttp.ClientSession"] = {}
_clients: dict[tuple[asyncio.AbstractEventLoop, bool], "httpx2.AsyncClient"] = {}
_loaded = threading.Event()


def session(model: ResolvedModel) -> "aiohttp.ClientSession":
    """Return this event loop's session for a model's streams. Time limits are the caller's, read by read."""
    import aiohttp

    place = (asyncio.get_running_loop(), model.guarded)
    if place not in _sessions:
        _drop_closed_loops()
        _sessions[place] = aiohttp.ClientSession(
            connector=_connector(guarded=model.guarded),
            timeout=aiohttp.ClientTimeout(total=WHOLE_STREAM_S, sock_connect=CONNECT_S),
            read_bufsize=2**17,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
    return _sessions[place]


def _connector(*, guarded: bool) -> "aiohttp.TCPConnector":
    import aiohttp

    from apps.common.outbound.connector import GuardedConnector

    kind = GuardedConnector if guarded else aiohttp.TCPConnector
    return kind(limit=0, keepalive_timeout=30)


async def load() -> None:
    """Import the openai package in a thread: it takes a second, in which an event loop would serve nobody."""
    if not _loaded.is_set():
        await asyncio.to_thread(importlib.import_module, "openai")
        _loaded.set()


def client(model: ResolvedModel) -> "openai.AsyncOpenAI":
    """Return an openai client for a call of a model that is not streamed, after ``load``.

    It lives for the call (0.1 ms), so that no key stays behind in memory; the connections are this event loop's.
    """
    import openai

    place = (asyncio.get_running_loop(), model.guarded)
    if place not in _clients:
        _drop_closed_loops()
        _clients[place] = _guarded_client() if model.guarded else openai.DefaultAsyncHttpxClient(cookies=_no_cookies())
    return openai.AsyncOpenAI(
        base_url=model.base_url,
        api_key=model.key.reveal() if model.key else "none",
        max_retries=0,  # the gateway's own rules are the same for every call
        timeout=openai.Timeout(WHOLE_CALL_S, connect=CONNECT_S),
        http_client=_clients[place],
    )


def _guarded_client() -> "httpx2.AsyncClient":
    import httpx2

    from apps.common.outbound.transport import GuardedTransport

    transport = GuardedTransport(max_bytes=WHOLE_CALL_BYTES, whole_s=WHOLE_CALL_S)
    return httpx2.AsyncClient(transport=transport, cookies=_no_cookies(), trust_env=False, follow_redirects=False)


def _no_cookies() -> CookieJar:
    """Return a jar that keeps nothing: what one tenant's endpoint sets would go out with another's calls."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


async def close() -> None:
    """Close this event loop's connections; later calls open new ones."""
    loop = asyncio.get_running_loop()
    for kind in [kind for kind in _sessions if kind[0] is loop]:
        await _sessions.pop(kind).close()
    for place in [place for place in _clients if place[0] is loop]:
        await _clients.pop(place).aclose()


class Connections:
    """The same as a service of the ASGI lifespan."""

    async def start(self) -> None:
        """Connections open when they are first needed."""

    async def stop(self) -> None:
        await close()


def _drop_closed_loops() -> None:
    for kind in [kind for kind in _sessions if kind[0].is_closed()]:
        del _sessions[kind]
    for place in [place for place in _clients if place[0].is_closed()]:
        del _clients[place]
