"""The only way to any model.

``resolve`` chooses a model once; every other function takes what it returned. A model of the
provider "builtin" answers in this process, any other at its OpenAI-compatible endpoint. Errors are
apps.models.errors, each with the vendor's first line and never a key.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

from apps.models import embedding, streaming
from apps.models.accounting import CANCELLED, Meter, metered
from apps.models.calls import complete
from apps.models.chat import ChatDelta, ChatReply, ChatRequest, ResolvedModel, Usage
from apps.models.errors import (
    BadVectors,
    ModelAddressRefused,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StreamBroken,
)
from apps.models.resolution import resolve, resolve_reference
from apps.models.tokens import estimate, estimate_prompt

if TYPE_CHECKING:
    from apps.models.embedding import Vectors

__all__ = [
    "BadVectors",
    "ModelAddressRefused",
    "ModelError",
    "ModelOverloaded",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "StreamBroken",
    "chat",
    "embed",
    "embed_now",
    "resolve",
    "resolve_reference",
    "stream_chat",
    "token_counter",
    "warm_up",
]

ANSWERER = "apps.models.builtin.answerer.answer"


async def stream_chat(
    model: ResolvedModel, request: ChatRequest, *, stop: asyncio.Event | None = None
) -> AsyncGenerator[ChatDelta, None]:
    """Stream an answer as it is written; the last delta has finish_reason, usage and whole tool calls.

    Setting ``stop`` closes the upstream connection at once and ends the stream without a last
    delta. So does cancelling the task, or ``aclose()``: wrap in ``contextlib.aclosing`` where you may
    leave early. A call is repeated (twice at most, with jitter, after Retry-After) only while
    nothing has been given out.

    Raises:
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout: before the first delta.
        StreamBroken: after it; or the stream ended without a finish reason. What was given out stands,
            and a tool call that was not whole was never given out.
    """
    stop = stop or asyncio.Event()
    with metered(model, request.purpose) as meter:
        written: list[str] = []
        last: ChatDelta | None = None
        try:
            async with aclosing(_deltas(model, request, stop)) as deltas:
                async for last in deltas:
                    if last.finish_reason and last.usage is not None:
                        meter.usage = last.usage  # now: the reader may leave with this delta
                    else:
                        written.append(last.text or last.reasoning)
                    yield last
        finally:
            if last is None or not last.finish_reason:
                _count_partial(meter, request, written)
        if last is None or not last.finish_reason:
            meter.outcome = CANCELLED  # stopped: the stream ended without its last delta
        elif last.usage is None:
            _count_partial(meter, request, [*written, " "])


async def _deltas(model: ResolvedModel, request: ChatRequest, stop: asyncio.Event) -> AsyncGenerator[ChatDelta, None]:
    source = import_string(ANSWERER)(request) if model.provider == "builtin" else streaming.stream(model, request, stop)
    async with aclosing(source) as deltas:
        async for delta in deltas:
            if stop.is_set() and model.provider == "builtin":
                return
            yield delta


def _count_partial(meter: Meter, request: ChatRequest, written: list[str]) -> None:
    """Estimate what an answer cost that has no count; one that never began cost nothing."""
    if written:
        prompt = estimate_prompt(request.messages, request.tools)
        meter.usage = Usage(prompt, estimate("".join(written)), estimated=True)


async def chat(model: ResolvedModel, request: ChatRequest) -> ChatReply:
    """Return a whole answer, for what nobody watches being written: decisions, summaries, titles.

    Raises:
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    if model.provider != "builtin":
        with metered(model, request.purpose) as meter:
            reply = await complete(model, request)
            meter.usage = reply.usage
            return reply
    text, last = "", ChatDelta()
    async with aclosing(stream_chat(model, request)) as deltas:
        async for delta in deltas:
            text, last = text + delta.text, delta
    reply = ChatReply(text, last.tool_calls or [], last.finish_reason or "stop")
    return reply if last.usage is None else ChatReply(text, reply.tool_calls, reply.finish_reason, last.usage)


async def embed(model: ResolvedModel, texts: Sequence[str], *, purpose: str, partial: bool = False) -> "Vectors":
    """Return float32 vectors [len(texts), dimensions], each of length 1, in the order of ``texts``.

    ``purpose`` is "query" or "passage"; models that tell them apart get it as they want it. With
    ``partial`` a text that the model cannot embed gives a row of NaN instead of an error for all.

    Raises:
        BadVectors: the model's answer cannot be used.
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    with metered(model, purpose) as meter:
        if model.provider == "builtin":
            from apps.models.builtin import embedder

            meter.add(_estimated(texts))
            return await embedder.embed(list(texts), purpose=purpose)
        return await embedding.embed_remotely(model, texts, partial=partial, count=meter.add)


def embed_now(model: ResolvedModel, texts: Sequence[str], *, purpose: str, partial: bool = False) -> "Vectors":
    """Do what ``embed`` does, for callers without an event loop: the worker and commands."""
    if model.provider == "builtin":
        from apps.models.builtin import embedder

        with metered(model, purpose) as meter:
            meter.add(_estimated(texts))
            return embedder.embed_now(list(texts), purpose=purpose)
    return asyncio.run(_embed_and_close(model, texts, purpose, partial))


def _estimated(texts: Sequence[str]) -> Usage:
    return Usage(sum(map(estimate, texts)), estimated=True)


async def _embed_and_close(model: ResolvedModel, texts: Sequence[str], purpose: str, partial: bool) -> "Vectors":
    from apps.models import connections

    try:
        return await embed(model, texts, purpose=purpose, partial=partial)
    finally:
        await connections.close()


def warm_up() -> None:
    """Begin to load what every question needs in this process; returns at once.

    For the moment at which somebody opens a page to ask: the second that it takes passes while they
    write, and a server that nobody asks stays small.
    """
    from apps.models.builtin import embedder

    embedder.warm_up()


def token_counter(model: ResolvedModel) -> Callable[[str], int]:
    """Return how to count tokens for a model: exactly for the built-in embedder, else by estimate."""
    if model.provider == "builtin" and model.kind == "embedding":
        from apps.models.builtin import embedder

        return embedder.count_tokens
    return estimate
