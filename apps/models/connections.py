"""Open connections to model endpoints, one set for each event loop."""

import asyncio
from typing import TYPE_CHECKING

from apps.models.chat import ResolvedModel

if TYPE_CHECKING:
    import aiohttp
    import openai

CONNECT_S = 10.0
FIRST_BYTE_S = 120.0  # a thinking model may be silent for long before its first token
BETWEEN_BYTES_S = 60.0
WHOLE_CALL_S = 180.0  # calls that are not streamed

_sessions: dict[asyncio.AbstractEventLoop, "aiohttp.ClientSession"] = {}
_clients: dict[tuple[asyncio.AbstractEventLoop, str, str], "openai.AsyncOpenAI"] = {}


def session() -> "aiohttp.ClientSession":
    """Return this event loop's session for streams. Time limits are the caller's, read by read."""
    import aiohttp

    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        _drop_closed_loops()
        _sessions[loop] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            read_bufsize=2**17,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
    return _sessions[loop]


def client(model: ResolvedModel) -> "openai.AsyncOpenAI":
    """Return this event loop's openai client for a model's endpoint, for calls that are not streamed."""
    import openai

    key = model.key.reveal() if model.key else "none"
    place = (asyncio.get_running_loop(), model.base_url, key)
    if place not in _clients:
        _drop_closed_loops()
        _clients[place] = openai.AsyncOpenAI(
            base_url=model.base_url,
            api_key=key,
            max_retries=0,  # the gateway's own rules are the same for every call
            timeout=openai.Timeout(WHOLE_CALL_S, connect=CONNECT_S),
        )
    return _clients[place]


async def close() -> None:
    """Close this event loop's connections; later calls open new ones."""
    loop = asyncio.get_running_loop()
    opened = _sessions.pop(loop, None)
    if opened is not None:
        await opened.close()
    for place in [place for place in _clients if place[0] is loop]:
        await _clients.pop(place).close()


class Connections:
    """The same as a service of the ASGI lifespan."""

    async def start(self) -> None:
        """Connections open when they are first needed."""

    async def stop(self) -> None:
        await close()


def _drop_closed_loops() -> None:
    for loop in [loop for loop in _sessions if loop.is_closed()]:
        del _sessions[loop]
    for place in [place for place in _clients if place[0].is_closed()]:
        del _clients[place]
