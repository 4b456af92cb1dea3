"""Small decisions: one label out of a few, as cheaply as the model allows.

The order: this process where it is sure; the next token's probabilities over one-letter labels (one token, and a
confidence that is measured, not claimed); a JSON answer under a schema; JSON in plain text; this process after all.
"""

import asyncio
import logging
import math
import string
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from apps.common.errors import KnowSphereError
from apps.models import gateway, quirks
from apps.models.builtin import intent
from apps.models.chat import ChatReply, ChatRequest, ResolvedModel, Usage

logger = logging.getLogger(__name__)
Ask = Callable[[ChatRequest], Awaitable[ChatReply]]

PATIENCE_S = 8.0  # a turn waits for its intent; after this the local guess stands
ALTERNATIVES = 10
JSON_TOKENS = 400
SILENT = "sends_no_logprobs"
LEAST_SHARE = 0.5  # of the next token's probability that its letters must have, or it wanted to say something else

INTENTS = {
    "greeting": "a greeting, a thank-you or a good-bye",
    "chitchat": "small talk, a question about the assistant itself, a joke, a feeling",
    "kb_search": "a question of fact, a problem or a request that documents may answer",
    "clarification": "a follow-up that only makes sense after the previous answer",
    "summarize": "wants a summary or an overview of documents",
    "web_search": "wants news, weather, prices of today, or asks to search the internet",
    "image_only": "asks only about the picture that came with it",
    "doc_only": "asks only about the file that came with it",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A label, how sure (0 to 1), how it came about (local, logprobs, json or rules), and what calls it took.

    ``margin``: by how much the next label is less probable; None where no probabilities were seen.
    """

    label: str
    confidence: float
    method: str
    usage: Usage = field(default_factory=Usage)
    margin: float | None = None


async def decide_intent(
    question: str, *, model: ResolvedModel, has_knowledge: bool, images: bool = False, attachments: bool = False
) -> Decision:
    """Return what a question wants. Never raises for a model that is down: the local guess stands.

    ``images`` and ``attachments`` say whether some came with the question; without them the labels
    image_only and doc_only are not given.
    """
    if not question.strip():
        label = "image_only" if images else "doc_only" if attachments else "chitchat"
        return Decision(label, 1.0, "rules")
    guess = await intent.classify(question, images=images, attachments=attachments)
    local = Decision(guess.label, guess.confidence, "local")
    if guess.is_sure or model.provider == "builtin":
        return local
    possible = {"image_only": images, "doc_only": attachments}
    options = {label: words for label, words in INTENTS.items() if possible.get(label, True)}
    knowledge = "Documents are selected for this message." if has_knowledge else "No documents are selected."
    system = _prompt("intent").replace("{knowledge}", knowledge)
    spent: list[Usage] = []
    decided = await decide(model, system=system, text=question, options=options, purpose="intent", spent=spent)
    return replace(decided or local, usage=sum(spent, Usage()))


def look_ahead(question: str) -> None:
    """Begin with this process's own guess, beside what must be read before a question is decided."""
    if question.strip():
        guessing = asyncio.ensure_future(intent.classify(question))
        guessing.add_done_callback(lambda done: done.cancelled() or done.exception())  # who decides hears it


async def decide(
    model: ResolvedModel,
    *,
    system: str,
    text: str,
    options: Mapping[str, str],
    purpose: str,
    spent: list[Usage] | None = None,
) -> Decision | None:
    """Let a model choose one of ``options`` (label -> what it means); None where it cannot say.

    ``{options}`` in ``system`` is where the list goes. Calls that fail or take longer than 8 s are
    logged, not raised. ``spent`` gets what the calls used, also those that decided nothing.
    """

    async def ask(request: ChatRequest) -> ChatReply:
        reply = await gateway.chat(model, request)
        if spent is not None:
            spent.append(reply.usage)
        return reply

    try:
        async with asyncio.timeout(PATIENCE_S):
            if "logprobs" in model.capabilities and not quirks.refuses(model, SILENT):
                decision = await _by_logprobs(model, ask, system, text, options, purpose)
                if decision is not None:
                    return decision
            return await _by_json(ask, system, text, options, purpose)
    except (KnowSphereError, TimeoutError) as error:  # also a key that cannot be decrypted any more
        logger.info("%s could not decide (%s): %s", model.name, purpose, getattr(error, "code", "too slow"))
        return None


async def _by_logprobs(
    model: ResolvedModel, ask: Ask, system: str, text: str, options: Mapping[str, str], purpose: str
) -> Decision | None:
    """Read the probabilities of the next token over letters; None where the vendor does not show them."""
    letters = dict(zip(string.ascii_uppercase, options, strict=False))
    listed = "\n".join(f"{letter}: {options[label]}" for letter, label in letters.items())
    request = ChatRequest(
        messages=[
            {
                "role": "system",
                "content": system.replace("{options}", listed) + "\nAnswer with one letter, nothing else.",
            },
            {"role": "user", "content": text},
        ],
        temperature=0.0,
        max_tokens=1,
        logprobs=ALTERNATIVES,
        thinking=False,
        purpose=purpose,
    )
    reply = await ask(request)
    weights: dict[str, float] = {}
    for token, logarithm in reply.top_logprobs.items():
        label = letters.get(token.strip().upper())
        if label is not None:
            weights[label] = weights.get(label, 0.0) + math.exp(min(logarithm, 0.0))
    share = sum(weights.values())
    if share < LEAST_SHARE:
        quirks.remember(model, SILENT, not reply.top_logprobs)
        return None
    best = max(weights, key=lambda label: weights[label])
    second = max((weight for label, weight in weights.items() if label != best), default=0.0)
    return Decision(best, weights[best] / share, "logprobs", margin=(weights[best] - second) / share)


async def _by_json(ask: Ask, system: str, text: str, options: Mapping[str, str], purpose: str) -> Decision | None:
    listed = "\n".join(f"{label}: {words}" for label, words in options.items())
    form = 'Answer with JSON only: {"label": one of the words before the colons, "confidence": 0 to 1}'
    request = ChatRequest(
        messages=[
            {"role": "system", "content": f"{system.replace('{options}', listed)}\n{form}"},
            {"role": "user", "content": text},
        ],
        temperature=0.0,
        max_tokens=JSON_TOKENS,
        response_format=_schema(list(options)),
        thinking=False,
        purpose=purpose,
    )
    return _read(await ask(request), options)


def _schema(labels: list[str]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": labels}, "confidence": {"type": "number"}},
        "required": ["label", "confidence"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "decision", "strict": True, "schema": schema}}


def _read(reply: ChatReply, options: Mapping[str, str]) -> Decision | None:
    """Find the JSON object in an answer, fenced or talked around as it may be."""
    start, end = reply.text.find("{"), reply.text.rfind("}")
    try:
        value = (
            orjson.loads(reply.text[start : end + 1]) if start >= 0 else {"label": reply.text.strip().strip("\"'.`")}
        )
    except orjson.JSONDecodeError:
        return None
    label = value.get("label") if isinstance(value, dict) else None
    if not isinstance(label, str) or label not in options:
        return None
    confidence = value.get("confidence")
    sure = float(confidence) if isinstance(confidence, int | float) else 0.5
    return Decision(label, min(max(sure, 0.0), 1.0), "json")


@lru_cache
def _prompt(name: str) -> str:
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8")
