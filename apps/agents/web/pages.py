"""Read one page of the web: fetched behind the guard, its main text taken out in a process apart."""

import asyncio
import io
import sys
from pathlib import Path

import orjson
from django.utils.translation import gettext as _

from apps.agents.web.errors import PASSING, PageUnavailable, PageUnreadable
from apps.agents.web.hits import WebPage
from apps.common.outbound.fetching import Fetched, fetch
from apps.common.text import storable
from apps.knowledge.errors import DocumentFailure, SandboxBusy

MOST_BYTES = 5_000_000
FETCH_S, READ_S = 15.0, 12.0
WAIT_S = 15.0  # for the files of others that this process has read meanwhile
TEXT = 400_000  # characters
PROGRAM = Path(__file__).with_name("main_text.py")


async def read_page(url: str) -> WebPage:
    """Return the main text of a page, a plain text, JSON as it is, or the text of a PDF.

    Raises:
        OutboundRefused, OutboundTooLarge, OutboundTimeout, OutboundFailed: it cannot be fetched.
        PageUnavailable: its server has no answer just now.
        PageUnreadable: it answers with an error, or with nothing that can be read.
    """
    got = await fetch(url, max_bytes=MOST_BYTES, timeout_s=FETCH_S)
    if got.status in PASSING:
        raise PageUnavailable(status=got.status)
    if got.status != 200:
        raise PageUnreadable(reason=_("the server answers with %(status)d") % {"status": got.status})
    kind = got.content_type.partition(";")[0].strip().lower()
    if kind in ("", "text/html", "application/xhtml+xml"):
        title, text = await _main_text(got.body)
    elif kind == "application/pdf":
        title, text = "", await asyncio.to_thread(_pdf, got.body)
    elif kind.startswith("text/") or kind in ("application/json", "application/xml") or kind.endswith("+json"):
        title, text = "", _decoded(got)
    else:
        raise PageUnreadable(reason=_("it is a file of the kind %(kind)s") % {"kind": kind[:60]})
    if not text.strip():
        raise PageUnreadable(reason=_("there is no text in it"))
    return WebPage(got.url, storable(" ".join(title.split()))[:300], storable(text)[:TEXT])


async def _main_text(html: bytes) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(READ_S):
            written, _errors = await process.communicate(html)
        found = orjson.loads(written)
        return str(found["title"]), str(found["text"])
    except TimeoutError:
        raise PageUnreadable(reason=_("it takes too long")) from None
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise PageUnreadable(reason=_("its HTML is broken")) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _pdf(body: bytes) -> str:
    from apps.knowledge.sandbox.limits import Limits
    from apps.knowledge.sandbox.reader import read

    try:
        return read(io.BytesIO(body), "application/pdf", limits=Limits(wall_s=READ_S), wait_s=WAIT_S).markdown
    except SandboxBusy as busy:
        raise PageUnreadable(reason=_("other files are being read just now, try it again in a moment")) from busy
    except DocumentFailure as failure:
        raise PageUnreadable(reason=failure.code) from failure


def _decoded(got: Fetched) -> str:
    charset = got.content_type.lower().partition("charset=")[2].strip(" \"';") or "utf-8"
    try:
        return got.body.decode(charset)
    except (LookupError, UnicodeDecodeError):
        return got.body.decode("utf-8", "replace")
