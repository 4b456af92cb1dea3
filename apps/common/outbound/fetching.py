"""Read one web page whose address a tenant, a model or another page gave."""

import asyncio
import ssl
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from apps.common.outbound.errors import (
    OutboundError,
    OutboundFailed,
    OutboundRefused,
    OutboundTimeout,
    OutboundTooLarge,
    OutboundUnusable,
)
from apps.common.outbound.guard import check_host, check_scheme
from apps.common.text import legible

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

REDIRECTS = 5
CONNECT_S = 10.0
PIECE_BYTES = 2**18
HEADERS = {
    "User-Agent": "KnowSphere",
    "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer, whatever its status. ``url`` is where the redirects ended; ``content_type`` is the whole header."""

    url: str
    status: int
    content_type: str
    body: bytes


async def fetch(url: str, *, max_bytes: int, timeout_s: float, tls: ssl.SSLContext | None = None) -> Fetched:
    """Read a page over http or https, following at most five redirects, each checked like the first.

    Nothing goes with the request: no cookies, no credentials, no referrer. ``timeout_s`` is for all of it,
    lookups and redirects too; ``max_bytes`` is for the unpacked body. ``tls`` replaces the trusted authorities.

    Raises:
        OutboundRefused: not http(s), not a public address (or a redirect to such), credentials in the address.
        OutboundTooLarge, OutboundTimeout, OutboundFailed.
    """
    import aiohttp

    from apps.common.outbound.connector import GuardedConnector

    target = _parsed(url)
    host = target.host or ""
    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession(
                connector=GuardedConnector(force_close=True, ssl=tls or True),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            ) as session,
        ):
            return await _follow(session, target, host, max_bytes)
    except TimeoutError:
        raise OutboundTimeout(host=host) from None


async def _follow(session: "aiohttp.ClientSession", target: "URL", host: str, max_bytes: int) -> Fetched:
    """Follow redirects. Errors name the host that was asked for: where it leads to may be nobody's business."""
    got = await _get(session, target, host, max_bytes)
    for _hop in range(REDIRECTS):
        if isinstance(got, Fetched):
            return got
        try:
            target = _parsed(got, target)
            got = await _get(session, target, host, max_bytes)
        except OutboundRefused:
            reason = _("it redirects to an address that is not opened")
            raise OutboundRefused(host=host, reason=reason) from None
        except OutboundError as error:
            raise type(error)(host=host, reason=error.details["reason"]) from None
    if isinstance(got, Fetched):
        return got
    raise OutboundUnusable(host=host, reason=_("it redirects too often"))


async def _get(session: "aiohttp.ClientSession", target: "URL", host: str, max_bytes: int) -> Fetched | str:
    """Make one request; return the answer, or where it redirects to."""
    import aiohttp

    try:
        async with session.get(target, headers=HEADERS, allow_redirects=False) as response:
            location = response.headers.get("Location")
            if location and response.status in (301, 302, 303, 307, 308):
                return location
            body = await _body(response, host, max_bytes)
            kind = legible(response.headers.get("Content-Type", ""))[:200]
            return Fetched(str(target), response.status, kind, body)
    except TimeoutError:
        raise
    except aiohttp.ClientConnectorCertificateError:
        raise OutboundUnusable(host=host, reason=_("its certificate is not valid")) from None
    except aiohttp.ClientConnectorError:
        raise OutboundFailed(host=host, reason=_("there is no connection to it")) from None
    except (aiohttp.ClientError, OSError, ValueError, zlib.error):
        raise OutboundFailed(host=host) from None  # the library's words quote what was received


def _parsed(url: str, base: "URL | None" = None) -> "URL":
    """Parse an address once: what is looked at here is what the connection is made from."""
    from yarl import URL

    try:
        parsed = URL(url.strip()) if base is None else base.join(URL(url.strip()))
    except (ValueError, TypeError):
        raise OutboundRefused(reason=_("this is not an address")) from None
    host = parsed.host or ""
    check_scheme(parsed.scheme, host)
    if not host:
        raise OutboundRefused(reason=_("this is not an address"))
    if parsed.user is not None or parsed.password is not None:
        raise OutboundRefused(host=host, reason=_("the address contains a user name or password"))
    address = check_host(parsed.raw_host or "", parsed.port or 0)
    return parsed.with_fragment(None) if address is None else parsed.with_fragment(None).with_host(str(address))


async def _body(response: "aiohttp.ClientResponse", host: str, max_bytes: int) -> bytes:
    if (response.content_length or 0) > max_bytes:
        raise OutboundTooLarge(host=host)
    packing = _packing(response.headers.get("Content-Encoding", ""), host)
    inflate = _Inflate(packing) if packing else None
    body = bytearray()
    received = 0
    async for chunk in response.content.iter_any():
        received += len(chunk)
        for piece in inflate.feed(chunk) if inflate else [chunk]:
            body += piece
            if len(body) > max_bytes:
                raise OutboundTooLarge(host=host)
        if received > max_bytes:  # members that unpack to nothing, for ever
            raise OutboundTooLarge(host=host)
    if inflate and received and not inflate.complete:
        raise OutboundFailed(host=host, reason=_("the answer broke off"))
    return bytes(body)


def _packing(encoding: str, host: str) -> str:
    match encoding.strip().lower():
        case "" | "identity":
            return ""
        case "gzip" | "x-gzip":
            return "gzip"
        case "deflate":
            return "deflate"
    raise OutboundUnusable(host=host, reason=_("it is packed in a way that was not asked for"))


class _Inflate:
    """Unpacks gzip (of any number of members) or deflate, in pieces of bounded size."""

    def __init__(self, packing: str) -> None:
        self._packing = packing
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first bytes say
        self._begun = False
        self.complete = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if not self._begun and self._packing == "deflate" and chunk[0] & 0x0F != 8:
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave the frame out
        self._begun = True
        full = False
        while chunk or full:
            if self.complete:
                if self._packing != "gzip" or not chunk.startswith(b"\x1f"):
                    return  # padding after the end
                self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
            piece = self._stream.decompress(chunk, PIECE_BYTES)
            yield piece
            self.complete = self._stream.eof
            chunk = self._stream.unused_data if self.complete else self._stream.unconsumed_tail
            full = len(piece) == PIECE_BYTES and not self.complete  # more may wait inside
