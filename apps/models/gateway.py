"""The only way to any model.

``resolve`` chooses a model once; every other function takes what it returned. A model of the
provider "builtin" answers in this process, any other at its OpenAI-compatible endpoint. Errors are
apps.models.errors, each with the vendor's first line and never a key.
"""

import asyncio
import base64
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.utils.module_loading import import_string

from apps.common.waiting import while_wanted
from apps.models import embedding, reranking, streaming
from apps.models.accounting import CANCELLED, Meter, metered
from apps.models.budgets import paid
from apps.models.calls import complete, transcribe_remotely
from apps.models.chat import ChatDelta, ChatReply, ChatRequest, ResolvedModel, Usage
from apps.models.errors import (
    BadRanking,
    BadVectors,
    BudgetExhausted,
    BudgetNeedsPrice,
    ModelAddressRefused,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StreamBroken,
)
from apps.models.pacing import place
from apps.models.resolution import default_of, defaults_statement, resolve, resolve_reference
from apps.models.tokens import estimate, estimate_prompt

if TYPE_CHECKING:
    from apps.models.embedding import Vectors

__all__ = [
    "BadRanking",
    "BadVectors",
    "BudgetExhausted",
    "BudgetNeedsPrice",
    "ModelAddressRefused",
    "ModelError",
    "ModelOverloaded",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "StreamBroken",
    "across_languages",
    "chat",
    "default_of",
    "defaults_statement",
    "describe",
    "describe_now",
    "embed",
    "embed_now",
    "embed_with_tokens_now",
    "rerank",
    "resolve",
    "resolve_reference",
    "stream_chat",
    "token_counter",
    "token_scores",
    "transcribe",
    "transcribe_now",
    "warm_up",
]

logger = logging.getLogger(__name__)
T = TypeVar("T")

DOWN = (ModelUnavailable, ModelTimeout, ModelOverloaded)
DESCRIPTION_TOKENS = 1_000
BYTES_A_TOKEN = 2_000  # of compressed speech, roughly; budgets hold as much until the vendor has counted
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
    began = False
    try:
        async with aclosing(_booked(model, request, stop)) as deltas:
            async for delta in deltas:
                began = True
                yield delta
        return
    except DOWN as error:
        if began or model.fallback is None:
            raise
        logger.info("%s is down (%s), %s answers instead", model.name, error.code, model.fallback.name)
    async with aclosing(_booked(model.fallback, request, stop)) as deltas:
        async for delta in deltas:
            yield delta


async def _booked(model: ResolvedModel, request: ChatRequest, stop: asyncio.Event) -> AsyncGenerator[ChatDelta, None]:
    async with _paid(model, request) as (meter, request):
        written: list[str] = []
        last: ChatDelta | None = None
        try:
            async with aclosing(_deltas(model, request, stop, meter)) as deltas:
                async for last in deltas:
                    if last.finish_reason and last.usage is not None:
                        meter.usage = last.usage  # now: the reader may leave with this delta
                    else:
                        written.append(last.text or last.reasoning)
                    yield last
        except Exception:
            _count_partial(meter, request, written, left=False)
            raise
        except BaseException:  # cancelled, or the reader left
            if last is None or not last.finish_reason:
                _count_partial(meter, request, written, left=True)
            raise
        if last is None or not last.finish_reason:
            meter.outcome = CANCELLED  # stopped: the stream ended without its last delta
            _count_partial(meter, request, written, left=True)
        elif last.usage is None:
            _count_partial(meter, request, [*written, " "], left=False)


@asynccontextmanager
async def _paid(model: ResolvedModel, request: ChatRequest) -> AsyncGenerator[tuple[Meter, ChatRequest]]:
    """Meter a chat call. Under a budget its answer has a limit: what was held for it, less near the budget's end."""
    wanted = request.max_tokens or model.max_output
    prompt = partial(estimate_prompt, request.messages, request.tools)
    async with paid(model, request.purpose, prompt, wanted) as (meter, answer):
        yield meter, request if answer in (None, request.max_tokens) else replace(request, max_tokens=answer)


async def _deltas(
    model: ResolvedModel, request: ChatRequest, stop: asyncio.Event, meter: Meter
) -> AsyncGenerator[ChatDelta, None]:
    if model.provider == "builtin":
        async with aclosing(import_string(ANSWERER)(request)) as deltas:
            async for delta in deltas:
                if stop.is_set():
                    return
                yield delta
        return
    async with place(model), aclosing(streaming.stream(model, request, stop)) as deltas:
        meter.sent = True
        async for delta in deltas:
            yield delta


def _count_partial(meter: Meter, request: ChatRequest, written: list[str], *, left: bool) -> None:
    """Estimate what an answer cost that has no count.

    One that failed before it began cost nothing. One that was ``left`` before cost its prompt: the vendor has it.
    """
    if written or (left and meter.sent):
        prompt = estimate_prompt(request.messages, request.tools)
        meter.usage = Usage(prompt, estimate("".join(written)), estimated=True)


async def chat(model: ResolvedModel, request: ChatRequest) -> ChatReply:
    """Return a whole answer, for what nobody watches being written: decisions, summaries, titles.

    Raises:
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    if model.provider != "builtin":
        return await _instead(model, lambda chosen: _complete(chosen, request))
    text, last = "", ChatDelta()
    async with aclosing(stream_chat(model, request)) as deltas:
        async for delta in deltas:
            text, last = text + delta.text, delta
    reply = ChatReply(text, last.tool_calls or [], last.finish_reason or "stop")
    return reply if last.usage is None else ChatReply(text, reply.tool_calls, reply.finish_reason, last.usage)


async def _complete(model: ResolvedModel, request: ChatRequest) -> ChatReply:
    if model.provider == "builtin":
        return await chat(model, request)
    async with _paid(model, request) as (meter, request), place(model):
        meter.sent = True
        try:
            reply = await complete(model, request)
        except asyncio.CancelledError:
            _count_partial(meter, request, [], left=True)
            raise
        meter.usage = reply.usage
        return reply


async def _instead(model: ResolvedModel, call: Callable[[ResolvedModel], Awaitable[T]]) -> T:
    """Call a model; while it is down, the one that stands in for it."""
    try:
        return await call(model)
    except DOWN as error:
        if model.fallback is None:
            raise
        logger.info("%s is down (%s), %s answers instead", model.name, error.code, model.fallback.name)
    return await call(model.fallback)


async def rerank(model: ResolvedModel, query: str, documents: Sequence[str]) -> list[float]:
    """Return how well each document answers the query: one number each, in their order, higher is better.

    Documents are cut to the model's limit. The numbers lie in [0, 1]; raw logits are made so, see reranking.

    Raises:
        BadRanking: the model's answer cannot be used.
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    if not documents:
        return []

    async def call(chosen: ResolvedModel) -> list[float]:
        async with paid(chosen, "rerank", lambda: reranking.tokens(query, documents)) as (meter, _none), place(chosen):
            return await reranking.rerank_remotely(chosen, query, documents, count=meter.add)

    return await _instead(model, call)


async def describe(model: ResolvedModel, image: bytes, *, media_type: str, prompt: str) -> str:
    """Return what a vision model says of a picture.

    Raises:
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    address = f"data:{media_type};base64,{base64.b64encode(image).decode()}"
    content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": address}}]
    request = ChatRequest([{"role": "user", "content": content}], max_tokens=DESCRIPTION_TOKENS, purpose="describe")
    return (await _instead(model, lambda chosen: _complete(chosen, request))).text.strip()


async def transcribe(model: ResolvedModel, audio: bytes, *, file_name: str, language: str = "") -> str:
    """Return what is said in a recording. ``language``: "en", "zh"; empty lets the model find out.

    Raises:
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """

    async def call(chosen: ResolvedModel) -> str:
        tokens = len(audio) // BYTES_A_TOKEN
        async with paid(chosen, "transcribe", lambda: tokens, tokens) as (meter, _most), place(chosen):
            text, usage = await transcribe_remotely(chosen, audio, file_name, language)
            meter.usage = usage
            return text

    return await _instead(model, call)


def chat_now(model: ResolvedModel, request: ChatRequest) -> ChatReply:
    """Do what ``chat`` does, for callers without an event loop."""
    return asyncio.run(_and_close(chat(model, request)))


def describe_now(
    model: ResolvedModel, image: bytes, *, media_type: str, prompt: str, check: Callable[[], None] = lambda: None
) -> str:
    """Do what ``describe`` does, for callers without an event loop; ``check`` as in ``embed_now``."""
    said = describe(model, image, media_type=media_type, prompt=prompt)
    return asyncio.run(_and_close(while_wanted(said, check)))


def transcribe_now(
    model: ResolvedModel, audio: bytes, *, file_name: str, language: str = "", check: Callable[[], None] = lambda: None
) -> str:
    """Do what ``transcribe`` does, for callers without an event loop; ``check`` as in ``embed_now``."""
    said = transcribe(model, audio, file_name=file_name, language=language)
    return asyncio.run(_and_close(while_wanted(said, check)))


async def embed(model: ResolvedModel, texts: Sequence[str], *, purpose: str, partial: bool = False) -> "Vectors":
    """Return float32 vectors [len(texts), dimensions], each of length 1, in the order of ``texts``.

    ``purpose`` is "query" or "passage"; models that tell them apart get it as they want it. With
    ``partial`` a text that the model cannot embed gives a row of NaN instead of an error for all.

    Raises:
        BadVectors: the model's answer cannot be used.
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    if model.provider == "builtin":
        from apps.models.builtin import embedder

        with metered(model, purpose) as meter:
            meter.add(_estimated(texts))
            return await embedder.embed(list(texts), purpose=purpose)
    async with paid(model, purpose, lambda: _estimated(texts).prompt) as (meter, _none), place(model):
        return await embedding.embed_remotely(model, texts, partial=partial, count=meter.add)


def embed_now(
    model: ResolvedModel,
    texts: Sequence[str],
    *,
    purpose: str,
    partial: bool = False,
    check: Callable[[], None] = lambda: None,
) -> "Vectors":
    """Do what ``embed`` does, for callers without an event loop: the worker and commands.

    ``check`` is called four times a second while a model over the network works; what it raises
    ends the call at once.
    """
    if model.provider == "builtin":
        from apps.models.builtin import embedder

        with metered(model, purpose) as meter:
            meter.add(_estimated(texts))
            return embedder.embed_now(list(texts), purpose=purpose)
    return asyncio.run(_and_close(while_wanted(embed(model, texts, purpose=purpose, partial=partial), check)))


def embed_with_tokens_now(
    model: ResolvedModel, texts: Sequence[str], *, check: Callable[[], None] = lambda: None
) -> "tuple[Vectors, list[bytes]]":
    """Return vectors of passages and what ``token_scores`` wants to know of each: empty but for the built-in model.

    Raises:
        BadVectors, ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    if model.provider != "builtin":
        return embed_now(model, texts, purpose="passage", partial=True, check=check), [b""] * len(texts)
    from apps.models.builtin import embedder

    with metered(model, "passage") as meter:
        meter.add(_estimated(texts))
        return embedder.embed_with_tokens_now(list(texts))


async def token_scores(query: str, passages: Sequence[bytes]) -> list[float | None]:
    """Return how well passages of the built-in embedding model answer, token by token; None where that is not known."""
    from apps.models.builtin import embedder

    return await embedder.token_scores(query, passages)


def across_languages(model: ResolvedModel, vector: "Vectors") -> "Vectors":
    """Return a question's vector as it finds passages in any language; other models' as they are."""
    if model.provider != "builtin":
        return vector
    from apps.models.builtin import late_interaction

    return late_interaction.without_language(vector)


def _estimated(texts: Sequence[str]) -> Usage:
    return Usage(sum(map(estimate, texts)), estimated=True)


async def _and_close(work: Coroutine[Any, Any, T]) -> T:
    from apps.models import connections

    try:
        return await work
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
