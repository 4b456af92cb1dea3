"""The token stream of an OpenAI-compatible endpoint: aiohttp, our own parser, orjson.

The SDK costs five times the CPU a token and saturates a process at a hundred turns
(docs/decisions/token-stream.md).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from django.utils.translation import gettext as _

from apps.common.outbound.errors import OutboundError
from apps.models import connections, quirks
from apps.models.chat import ChatDelta, ChatRequest, ResolvedModel, Usage, Wire
from apps.models.errors import (
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StreamBroken,
    error_for,
    first_line,
    outbound_error,
    refusal,
    retry_after,
    vendor_words,
)
from apps.models.requests import chat_body, encode
from apps.models.retries import pause_s
from apps.models.tokens import estimate, estimate_prompt
from apps.models.wire.deltas import Broken, DeltaReader, Refused
from apps.models.wire.events import EventParser, EventTooLong

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)
T = TypeVar("T")

USAGE_GRACE_S = 2.0  # how long the usage may come after the finish reason
ERROR_BYTES = 65_536
STREAM_BYTES = 2**26  # a token is about 200 bytes of stream; no model writes 300 000
DONE = b"[DONE]"


class _Stopped(Exception):
    """The caller's stop event was set."""


class _Silence:
    """Hangs up on a vendor that says nothing for too long.

    One timer for a stream, which is looked at when it is over: a time limit for each read was a twentieth of a token's
    cost.
    """

    def __init__(self, hang_up: Callable[[], None]) -> None:
        self.over = False
        self._hang_up = hang_up
        self._loop = asyncio.get_running_loop()
        self._until = self._looks_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def allow(self, seconds: float) -> None:
        """From now on so long."""
        self._until = self._loop.time() + seconds
        if self._timer is None or self._until < self._looks_at:
            self.end()
            self._arm()

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._looks_at = self._until
        self._timer = self._loop.call_at(self._until, self._look)

    def _look(self) -> None:
        if self._loop.time() < self._until:
            self._arm()
        else:
            self.over = True
            self._hang_up()


async def stream(model: ResolvedModel, request: ChatRequest, stop: asyncio.Event) -> AsyncGenerator[ChatDelta, None]:
    """Stream one answer. Tried again only while nothing of it has been given out.

    When ``stop`` is set the upstream connection closes at once and the stream ends without a last
    delta. See gateway.stream_chat for the errors.
    """
    attempt = 0
    while True:
        attempt += 1
        began = False
        try:
            async with aclosing(_attempt(model, request, stop)) as deltas:
                async for delta in deltas:
                    began = True
                    yield delta
            return
        except _Stopped:
            return
        except ModelError as error:
            if began:
                by_filter = isinstance(error, ModelRefused) and "http_status" not in error.details
                if isinstance(error, StreamBroken) or by_filter:
                    raise
                raise StreamBroken(model=model.name, reason=error.details["reason"]) from error
            pause = pause_s(error, attempt)
            if pause is None:
                raise
            logger.info("%s failed (%s), trying again in %.1f s", model.name, error.code, pause)
        try:
            await _unless(stop, asyncio.sleep(pause))
        except _Stopped:
            return


async def _attempt(model: ResolvedModel, request: ChatRequest, stop: asyncio.Event) -> AsyncGenerator[ChatDelta, None]:
    response = await _open(model, request, stop)
    watcher = asyncio.ensure_future(stop.wait())
    watcher.add_done_callback(lambda done: None if done.cancelled() else response.close())  # ends the read that waits
    silence = _Silence(response.close)
    reader = DeltaReader(opened=quirks.refuses(model, "opened_thinking"))
    written: list[str] = []
    try:
        async with response:
            async for value in _values(model, response, reader, silence):
                delta = reader.read(value)
                if delta is not None:
                    written.append(delta.text + delta.reasoning)
                    yield delta
        rest, calls, reason = reader.end()
    except Refused as refusal:
        raise ModelRefused(model=model.name, reason=str(refusal)) from None
    except Broken as broken:
        if stop.is_set():
            raise _Stopped from None
        if broken.status:
            raise error_for(broken.status, vendor_words(broken.words), model) from None
        raise StreamBroken(model=model.name, reason=first_line(vendor_words(broken.words), model)) from None
    except (ModelError, OSError):
        if stop.is_set():
            raise _Stopped from None
        raise
    finally:
        watcher.cancel()
        silence.end()
    if stop.is_set():
        raise _Stopped
    if reader.think.stray or reader.think.unopened:
        quirks.remember(model, "opened_thinking", reader.think.stray)
    if rest is not None:
        written.append(rest.text + rest.reasoning)
        yield rest
    usage = reader.usage or _estimated(request, "".join(written), calls)
    yield ChatDelta(tool_calls=calls, finish_reason=reason, usage=usage)


async def _open(model: ResolvedModel, request: ChatRequest, stop: asyncio.Event) -> "aiohttp.ClientResponse":
    """Send the request and return the response when its head is there and good."""
    body = chat_body(model, request, stream=True)
    while True:
        sent = quirks.fitted(model, body)
        response = await _unless(stop, _post(model, sent))
        if response.status == 200:
            return response
        async with response:
            words = await _error_words(response)
        if response.status in (400, 404, 422) and quirks.learn(model, sent, words):
            continue
        if 300 <= response.status < 400:
            raise ModelRefused(model=model.name, reason=_("the address answers with a redirect"))
        raise error_for(response.status, words, model, retry_after_s=retry_after(response.headers))


async def _post(model: ResolvedModel, body: dict[str, Any]) -> "aiohttp.ClientResponse":
    import aiohttp

    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
    if model.key is not None:
        headers["Authorization"] = f"Bearer {model.key.reveal()}"
    try:
        async with asyncio.timeout(connections.FIRST_BYTE_S):
            return await connections.session(model).post(
                f"{model.base_url}/chat/completions", data=encode(body), headers=headers, allow_redirects=False
            )
    except OutboundError as error:
        raise outbound_error(error, model) from None
    except TimeoutError as error:  # also aiohttp's own, while connecting
        raise ModelTimeout(model=model.name, reason=_("no answer began in time")) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ModelUnavailable(model=model.name, reason=first_line(error, model)) from error


async def _values(
    model: ResolvedModel, response: "aiohttp.ClientResponse", reader: DeltaReader, silence: _Silence
) -> AsyncIterator[Any]:
    """Yield the JSON values of the response, from events or from one plain body."""
    kind = response.content_type
    if kind == "text/html":
        raise ModelUnavailable(model=model.name, reason=_("the address answers with a web page, not with a model"))
    parser = EventParser()
    whole: list[bytes] | None = [] if kind == "application/json" else None
    left = STREAM_BYTES
    try:
        while chunk := await _read(model, response, reader, silence, first=left == STREAM_BYTES):
            left -= len(chunk)
            if left < 0:
                raise ModelRefused(model=model.name, reason=_("its answer does not end"))
            if whole is not None:
                whole.append(chunk)
                continue
            for event in parser.feed(chunk):
                if event == DONE:
                    return
                yield _decoded(event)
    except EventTooLong:
        raise StreamBroken(model=model.name, reason=_("one event of the stream is too long")) from None
    for event in [b"".join(whole)] if whole is not None else parser.finish():
        if event != DONE:
            yield _decoded(event)


async def _read(
    model: ResolvedModel, response: "aiohttp.ClientResponse", reader: DeltaReader, silence: _Silence, *, first: bool
) -> bytes:
    import aiohttp

    between = connections.FIRST_BYTE_S if first else connections.BETWEEN_BYTES_S  # some send the head, and then think
    limit = USAGE_GRACE_S if reader.finish_reason else between
    silence.allow(limit)
    try:
        return await response.content.readany()
    except (aiohttp.ClientError, OSError) as error:
        if reader.finish_reason:
            return b""
        if silence.over and first:
            raise ModelTimeout(model=model.name, reason=_("no answer began in time")) from None
        if silence.over:
            raise ModelTimeout(
                model=model.name, reason=_("silent for %(seconds)d s in the middle of the answer") % {"seconds": limit}
            ) from None
        logger.info("the stream of %s was cut: %s", model.name, first_line(error, model))
        raise StreamBroken(model=model.name, reason=_("the connection was cut")) from error


def _decoded(event: bytes) -> Any:
    try:
        return orjson.loads(event)
    except orjson.JSONDecodeError:
        return None  # keep-alives and chatter of proxies


async def _error_words(response: "aiohttp.ClientResponse") -> str:
    import aiohttp

    try:
        async with asyncio.timeout(connections.CONNECT_S):
            raw = await response.content.read(ERROR_BYTES)
    except (aiohttp.ClientError, OSError, TimeoutError):
        return f"HTTP {response.status}"
    return refusal(raw, response.status)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Await ``work``; when ``stop`` is set first, cancel it. Raises _Stopped."""
    task = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    finally:
        stopping.cancel()
    if stop.is_set():
        _abandon(task)
        raise _Stopped
    return task.result()


def _abandon(task: "asyncio.Task[Any]") -> None:
    """Cancel the task, or close the response that it came back with after all."""

    def close(done: "asyncio.Task[Any]") -> None:
        if not done.cancelled() and done.exception() is None and (response := done.result()) is not None:
            response.close()

    task.cancel()
    task.add_done_callback(close)


def _estimated(request: ChatRequest, text: str, calls: list[Wire] | None) -> Usage:
    completion = estimate(text) + (estimate(orjson.dumps(calls).decode()) if calls else 0)
    return Usage(estimate_prompt(request.messages, request.tools), completion, estimated=True)
