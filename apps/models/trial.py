"""Whether a model works, and what it can do: a few real calls through the gateway, as small as they can be."""

import asyncio
import base64
import io
import time
import wave
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson

from apps.common.errors import KnowSphereError
from apps.models import connections, gateway
from apps.models.chat import ChatRequest, ResolvedModel
from apps.models.models import Kind

DOT = base64.b64decode(  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
TOOL = {
    "type": "function",
    "function": {
        "name": "report",
        "description": "Report a number.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "number", "strict": True, "schema": SCHEMA}}


@dataclass(frozen=True, slots=True)
class Trial:
    """What came out. ``error`` is a sentence for people, empty where it works; it holds no key."""

    ok: bool
    ms: int
    first_token_ms: int | None = None
    capabilities: tuple[str, ...] = ()
    dimensions: int = 0
    error: str = ""
    code: str = ""


async def attempt(model: ResolvedModel) -> Trial:
    """Call a model as its kind is called. Never raises for a model that does not work."""
    began = time.perf_counter()
    try:
        match model.kind:
            case Kind.CHAT:
                return await _chat(model, began)
            case Kind.EMBEDDING:
                vectors = await gateway.embed(model, ["test"], purpose="query")
                return Trial(True, _ms(began), dimensions=int(vectors.shape[1]))
            case Kind.RERANK:
                await gateway.rerank(model, "test", ["test", "something else"])
            case Kind.VISION:
                await gateway.describe(model, DOT, media_type="image/png", prompt="Which colour is it? One word.")
            case _:
                await gateway.transcribe(model, _silence(), file_name="silence.wav")
    except KnowSphereError as error:
        return Trial(False, _ms(began), error=error.message, code=error.code)
    return Trial(True, _ms(began))


def attempt_now(model: ResolvedModel) -> Trial:
    """Do what ``attempt`` does, for callers without an event loop."""

    async def whole() -> Trial:
        try:
            return await attempt(model)
        finally:
            await connections.close()

    return asyncio.run(whole())


async def _chat(model: ResolvedModel, began: float) -> Trial:
    first, counted = None, False
    async with aclosing(gateway.stream_chat(model, _question("Reply with the word OK.", max_tokens=64))) as deltas:
        async for delta in deltas:
            first = _ms(began) if first is None else first
            counted = counted or (delta.usage is not None and not delta.usage.estimated)
    ms = _ms(began)
    tries = {"tools": _has_tools, "logprobs": _has_logprobs, "json_schema": _has_schema}
    found = await asyncio.gather(*(_succeeds(has, model) for has in tries.values()))
    able = [name for name, has in zip(tries, found, strict=True) if has]
    return Trial(True, ms, first, (*able, *(["stream_usage"] if counted else [])))


async def _succeeds(has: Callable[[ResolvedModel], Awaitable[bool]], model: ResolvedModel) -> bool:
    try:
        return await has(model)
    except KnowSphereError:
        return False


async def _has_tools(model: ResolvedModel) -> bool:
    reply = await gateway.chat(model, _question("Report the number 7.", tools=[TOOL], max_tokens=256))
    return bool(reply.tool_calls)


async def _has_logprobs(model: ResolvedModel) -> bool:
    return bool((await gateway.chat(model, _question("A or B?", logprobs=5, max_tokens=1))).top_logprobs)


async def _has_schema(model: ResolvedModel) -> bool:
    request = _question("The number 7, as JSON with the field n.", response_format=FORMAT, max_tokens=256)
    try:
        value = orjson.loads((await gateway.chat(model, request)).text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and isinstance(value.get("n"), int)


def _question(text: str, **options: Any) -> ChatRequest:
    return ChatRequest([{"role": "user", "content": text}], purpose="test", **options)


def _silence() -> bytes:
    """Return half a second of nothing as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(16_000)
        recording.writeframes(bytes(16_000))
    return file.getvalue()


def _ms(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
