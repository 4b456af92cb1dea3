"""Calls of an OpenAI-compatible endpoint that are not streamed, through the ``openai`` package."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.utils.translation import gettext as _

from apps.common.outbound.errors import OutboundError
from apps.common.text import legible
from apps.models import connections, quirks
from apps.models.chat import ChatReply, ChatRequest, ResolvedModel, Usage
from apps.models.errors import (
    ModelTimeout,
    ModelUnavailable,
    error_for,
    first_line,
    outbound_error,
    refusal,
    retry_after,
    vendor_words,
)
from apps.models.requests import chat_body, cleaned
from apps.models.retries import retrying
from apps.models.tokens import estimate, estimate_prompt
from apps.models.wire.deltas import Broken, DeltaReader, Refused, read_usage

LISTING_S = 15.0
MOST_LISTED = 1_000


async def complete(model: ResolvedModel, request: ChatRequest) -> ChatReply:
    """Return one whole answer. See gateway.chat for the errors."""
    value = await retrying(lambda: post(model, "/chat/completions", chat_body(model, request, stream=False)))
    reader = DeltaReader()
    try:
        said = reader.read(value)
        rest, calls, reason = reader.end()
    except Refused as refusal:
        raise error_for(400, refusal, model) from None
    except Broken as broken:
        raise error_for(broken.status or 502, vendor_words(broken.words), model) from None
    text = "".join(part.text for part in (said, rest) if part is not None)
    usage = reader.usage or Usage(estimate_prompt(request.messages, request.tools), estimate(text), estimated=True)
    return ChatReply(text, calls or [], reason, usage, _top_logprobs(value))


async def transcribe_remotely(model: ResolvedModel, audio: bytes, file_name: str, language: str) -> tuple[str, Usage]:
    """Return what is said in a recording, and its tokens where the vendor counts them."""
    await connections.load()
    import httpx2

    fields = {"model": model.name, "response_format": "json", **({"language": language} if language else {})}

    async def send() -> Any:
        headers = {"Content-Type": "multipart/form-data"}  # the package adds the boundary
        async with _translated(model):
            response = await connections.client(model).post(
                "/audio/transcriptions",
                cast_to=httpx2.Response,
                body=fields,
                files=[("file", (file_name, audio))],
                options={"headers": headers},
            )
            return response.json()

    value = await retrying(send)
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise ModelUnavailable(model=model.name, reason=_("its answer holds no text"))
    used = value.get("usage")
    said = read_usage(
        {"prompt_tokens": used.get("input_tokens"), "completion_tokens": used.get("output_tokens")}
        if isinstance(used, dict)
        else None
    )
    return value["text"].strip(), said or Usage(completion=estimate(value["text"]), estimated=True)


async def list_names(model: ResolvedModel) -> list[str]:
    """Return the names of the models that a vendor says it has, in its order; at most a thousand.

    Raises:
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    await connections.load()
    import httpx2

    async with _translated(model):
        response = await connections.client(model).get(
            "/models", cast_to=httpx2.Response, options={"timeout": LISTING_S}
        )
        value = response.json()
    rows = value.get("data", value.get("models")) if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise ModelUnavailable(model=model.base_url, reason=_("its answer is no list of models"))
    names = [row.get("id") or row.get("name") for row in rows if isinstance(row, dict)]
    found = [legible(name)[:200].strip() for name in names[:MOST_LISTED] if isinstance(name, str)]
    return list(dict.fromkeys(name for name in found if name))


async def post(model: ResolvedModel, path: str, body: dict[str, Any]) -> Any:
    """Send one request, once more if an optional parameter was refused; return the JSON value."""
    await connections.load()
    import httpx2
    import openai

    while True:
        sent = quirks.fitted(model, body)
        async with _translated(model):
            try:
                response = await connections.client(model).post(path, cast_to=httpx2.Response, body=cleaned(sent))
                return response.json()
            except openai.APIStatusError as error:
                words = refusal(error.response.content, error.status_code)
                if error.status_code not in (400, 404, 422) or not quirks.learn(model, sent, words):
                    raise


@asynccontextmanager
async def _translated(model: ResolvedModel) -> AsyncIterator[None]:
    """Bound a call from its beginning to its last byte, and turn what the package raises into our errors."""
    import openai

    began = time.monotonic()
    try:
        async with asyncio.timeout(connections.WHOLE_CALL_S):
            yield
    except openai.APIStatusError as error:
        words = refusal(error.response.content, error.status_code)
        wait = retry_after(error.response.headers)
        raise error_for(error.status_code, words, model, retry_after_s=wait) from None
    except OutboundError as error:
        raise outbound_error(error, model) from None
    except (openai.APITimeoutError, TimeoutError):
        seconds = time.monotonic() - began
        raise ModelTimeout(
            model=model.name, reason=_("no answer within %(seconds)d s") % {"seconds": seconds}
        ) from None
    except openai.APIConnectionError as error:
        reason = first_line(error.__cause__ or error, model)
        raise ModelUnavailable(model=model.name, reason=reason) from None
    except ValueError:
        raise ModelUnavailable(model=model.name, reason=_("the address does not answer in JSON")) from None


def _top_logprobs(value: Any) -> dict[str, float]:
    """Read the first token's alternatives; empty where the vendor gives none."""
    try:
        first = value["choices"][0]["logprobs"]["content"][0]
        alternatives = {str(top["token"]): float(top["logprob"]) for top in first.get("top_logprobs") or []}
        alternatives.setdefault(str(first["token"]), float(first["logprob"]))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return {}
    return {token: logprob for token, logprob in alternatives.items() if not math.isnan(logprob)}
