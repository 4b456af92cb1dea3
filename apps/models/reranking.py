"""Scores of passages for a question, from a /rerank endpoint: Jina, SiliconFlow and their kin, or TEI."""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from apps.models import quirks
from apps.models.calls import post
from apps.models.chat import ResolvedModel, Usage
from apps.models.embedding import batches, fit
from apps.models.errors import BadRanking, ModelRefused
from apps.models.retries import retrying
from apps.models.tokens import estimate
from apps.models.wire.deltas import read_count

LOGITS = "gives_logits"
TEI = "speaks_tei"  # Hugging Face's server says "texts" for documents, and answers with a list
TOKENS_A_REQUEST = 65_536
HIGHEST = 10**9  # of a score, either way; logits are tens


async def rerank_remotely(
    model: ResolvedModel, query: str, documents: Sequence[str], *, count: Callable[[Usage], None]
) -> list[float]:
    """Return one score in [0, 1] a document, in their order. See gateway.rerank."""
    room = max(model.max_input - estimate(query), model.max_input // 2)
    query = fit(query, model.max_input // 2)
    scores: list[float] = []
    for batch in batches([fit(text, room) or " " for text in documents], model.max_batch, TOKENS_A_REQUEST):
        try:
            value = await _ask(model, query, batch)
        except asyncio.CancelledError:
            count(Usage(tokens(query, batch), estimated=True))  # the vendor has them
            raise
        count(_usage(value) or Usage(tokens(query, batch), estimated=True))
        scores.extend(_checked(model, value, len(batch)))
    return _shares(model, scores)


def gives_logits(model: ResolvedModel) -> bool:
    """Say whether a model's scores are raw: by its settings, or by what it answered before."""
    return model.logits or quirks.refuses(model, LOGITS)


def _shares(model: ResolvedModel, scores: list[float]) -> list[float]:
    """Return scores in [0, 1].

    Raw logits go through the logistic function: those of a model that is set to give them, or that ever gave a number
    which is no share. From then on in every answer, or a threshold would mean another thing from list to list.
    """
    if any(not 0.0 <= score <= 1.0 for score in scores):
        quirks.remember(model, LOGITS, True)
    if not gives_logits(model):
        return scores
    return [1 / (1 + math.exp(-max(min(score, 60.0), -60.0))) for score in scores]


def tokens(query: str, documents: Sequence[str]) -> int:
    """Estimate what scoring documents costs: vendors count the query with each of them."""
    return estimate(query) * len(documents) + sum(map(estimate, documents))


async def _ask(model: ResolvedModel, query: str, documents: list[str]) -> Any:
    if not quirks.refuses(model, TEI):
        usual = {
            "model": model.name,
            "query": query,
            "documents": documents,
            "top_n": len(documents),
            "return_documents": False,
        }
        try:
            return await retrying(lambda: post(model, "/rerank", usual))
        except ModelRefused as error:
            if "texts" not in str(error.details.get("reason", "")):
                raise
            quirks.remember(model, TEI, True)
    return await retrying(lambda: post(model, "/rerank", {"query": query, "texts": documents, "truncate": True}))


def _usage(value: Any) -> Usage | None:
    """Find the tokens, which vendors put in three places."""
    if not isinstance(value, dict):
        return None
    match value:
        case {"usage": {"total_tokens": tokens}}:
            pass
        case {"tokens": {"input_tokens": tokens}} | {"meta": {"tokens": {"input_tokens": tokens}}}:
            pass
        case _:
            return None
    return Usage(count) if (count := read_count(tokens)) else None


def _checked(model: ResolvedModel, value: Any, count: int) -> list[float]:
    """Return a score for each of ``count`` documents. Raises BadRanking."""
    found = value
    if isinstance(value, dict):
        output = value.get("output")
        found = value.get("results") or value.get("data") or (output.get("results") if isinstance(output, dict) else [])
    if not isinstance(found, list) or len(found) != count:
        got = len(found) if isinstance(found, list) else 0
        raise BadRanking(
            model=model.name, reason=_("%(found)d scores for %(count)d texts") % {"found": got, "count": count}
        )
    scores: list[float | None] = [None] * count
    for item in found:
        index = item.get("index") if isinstance(item, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or scores[index] is not None:
            raise BadRanking(model=model.name, reason=_("their numbers do not match the texts"))
        score = item.get("relevance_score", item.get("score"))
        if not isinstance(score, int | float) or not -HIGHEST < score < HIGHEST:  # nor NaN
            raise BadRanking(model=model.name, reason=_("one is not a number"))
        scores[index] = float(score)
    return [score for score in scores if score is not None]
