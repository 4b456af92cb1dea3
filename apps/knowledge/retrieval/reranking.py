"""The stage that reads the best candidates again and puts them into a better order.

Three ways: a rerank model of the workspace, a chat model that orders a list, or the built-in one, which compares
token by token (``models.builtin.late_interaction``). A failure leaves the fused order, and says so.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from apps.common.database import in_db
from apps.common.errors import KnowSphereError
from apps.knowledge.retrieval.candidates import Candidate
from apps.knowledge.retrieval.fusion import Part, stretched, total
from apps.knowledge.retrieval.profiles import Profile
from apps.models import gateway
from apps.models.chat import ChatRequest, ResolvedModel
from apps.models.errors import ModelTimeout

logger = logging.getLogger(__name__)

PROMPTS = Path(__file__).parent.parent / "prompts"
PATIENCE_S = 12.0  # for a reranker: then the fused order stands
SHOWN = 700  # characters of a passage that a chat model sees
COVERED = 0.35  # share of the question's words in one passage from which the built-in reranker changes nothing
BUILT_IN, MODEL, LLM = "built_in", "model", "llm"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which reranker a search uses, "" for none; ``share`` is the built-in one's part of the score."""

    kind: str = ""
    share: float = 1.0


def choose(profile: Profile, *, wanted: bool, configured: bool, built_in: bool, covered: float) -> Choice:
    """Choose the reranker.

    The built-in one helps where the words of the question are not those of the documents, as across
    languages, and disturbs where they are: its share falls with the square of what is covered
    (docs/decisions/rerank.md).

    Args:
        profile: what the search is told to use.
        wanted: whether the caller wants one at all.
        configured: whether a rerank model is the workspace's default; one that the profile names needs no default.
        built_in: whether the bases are embedded by the built-in model.
        covered: ``candidates.coverage``.
    """
    if not wanted or profile.rerank == "off":
        return Choice()
    if profile.rerank in (MODEL, LLM):
        return Choice(profile.rerank)
    if profile.rerank == "auto" and (configured or settings.RERANK_MODEL or profile.rerank_model):
        return Choice(MODEL)
    if built_in and covered < COVERED:
        return Choice(BUILT_IN, profile.rerank_weight * (1 - covered) ** 2)
    return Choice()


async def rerank(
    choice: Choice, profile: Profile, query: str, candidates: Sequence[Candidate], *, workspace_id: UUID
) -> list[Candidate]:
    """Return the candidates in their new order; each that was read has ``scores["rerank"]`` in [0, 1].

    Raises:
        KnowSphereError: the model did not answer, or nothing that can be used.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await _rerank(choice, profile, query, candidates, workspace_id)
    except TimeoutError:
        reason = _("no answer within %(seconds)d s") % {"seconds": PATIENCE_S}
        raise ModelTimeout(model=str(choice.kind), reason=reason) from None


async def _rerank(
    choice: Choice, profile: Profile, query: str, candidates: Sequence[Candidate], workspace_id: UUID
) -> list[Candidate]:
    if choice.kind == BUILT_IN:
        return await _by_tokens(choice.share, query, candidates)
    if choice.kind == LLM:
        return await _by_chat(query, candidates, workspace_id)
    resolve = partial(gateway.resolve, "rerank", workspace_id=workspace_id, explicit=profile.rerank_model)
    model = await in_db(resolve)
    scores = await gateway.rerank(model, query, [candidate.row["text"] for candidate in candidates])
    for candidate, score in zip(candidates, scores, strict=True):
        candidate.score = candidate.scores["rerank"] = score
    return sorted(candidates, key=lambda candidate: -candidate.score)


async def _by_tokens(share: float, query: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Mix the fused score with the likeness of tokens; a passage without tokens keeps its fused score.

    The fused scores stay as they are: stretching them again over these few costs what was gained. What the words say
    counts beside the tokens as it does beside the vector. Scores of ranks alone are a few hundredths, whatever they
    mean: those are stretched.
    """
    if not any(candidate.parts for candidate in candidates):
        for candidate, place in zip(candidates, stretched([one.score for one in candidates]), strict=True):
            candidate.score = place
    found = await gateway.token_scores(query, [bytes(candidate.row.get("signs") or b"") for candidate in candidates])
    known = [(candidate, score) for candidate, score in zip(candidates, found, strict=True) if score is not None]
    for (candidate, score), place in zip(known, stretched([score for _one, score in known]), strict=True):
        candidate.scores["rerank"] = score
        parts = {
            name: Part(part.share, place if name == "vector" else part.score) for name, part in candidate.parts.items()
        }
        candidate.score = (1 - share) * candidate.score + share * (total(parts) if parts else place)
    return sorted(candidates, key=lambda candidate: -candidate.score)


async def _by_chat(query: str, candidates: Sequence[Candidate], workspace_id: UUID) -> list[Candidate]:
    """Let a chat model order the list. What it names twice or invents is left out; what it leaves out comes last."""
    model: ResolvedModel = await in_db(partial(gateway.resolve, "chat", workspace_id=workspace_id, fast=True))
    if model.provider == "builtin":
        raise gateway.ModelUnavailable(model=model.name, reason="it cannot order passages")
    passages = "\n\n".join(
        f"[{number}] {candidate.row['document']}\n{candidate.row['text'][:SHOWN]}"
        for number, candidate in enumerate(candidates, start=1)
    )
    messages = [
        {"role": "system", "content": (PROMPTS / "rerank.md").read_text(encoding="utf-8").strip()},
        {"role": "user", "content": f"Question: {query}\n\nPassages:\n{passages}"},
    ]
    reply = await gateway.chat(model, ChatRequest(messages, temperature=0, max_tokens=400, purpose="rerank"))
    order = _order(reply.text, len(candidates))
    if not order:
        raise gateway.BadRanking(model=model.name, reason="it named no passage")
    rest = [place for place in range(len(candidates)) if place not in order]
    for position, place in enumerate([*order, *rest]):
        score = 1 - position / len(candidates) if position < len(order) else 0.0
        candidates[place].score = candidates[place].scores["rerank"] = score
    return [candidates[place] for place in [*order, *rest]]


def _order(text: str, count: int) -> list[int]:
    """Return the places (from 0) that a reply names, each once, those that exist."""
    value = object_in(text).get("order")
    numbers = value if isinstance(value, list) else []
    places = [n - 1 for n in numbers if isinstance(n, int) and not isinstance(n, bool) and 0 < n <= count]
    return list(dict.fromkeys(places))


def object_in(text: str) -> dict[str, object]:
    """Return the JSON object that a reply holds, with whatever stands around it; empty where there is none."""
    try:
        value = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def explained(error: KnowSphereError) -> str:
    """Return why there was no reranking, for the funnel; logged here."""
    logger.warning("a search was not reranked: %s", error.code)
    return error.message
