"""Other ways to ask a question that found too little: from a model, or from the workspace's own synonyms."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from uuid import UUID

from apps.common.database import in_db
from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.knowledge.index_text import fold, query_terms
from apps.knowledge.models import Synonyms
from apps.knowledge.retrieval.profiles import Profile
from apps.knowledge.retrieval.reranking import object_in
from apps.models import gateway
from apps.models.chat import ChatRequest

logger = logging.getLogger(__name__)

PROMPT = Path(__file__).parent.parent / "prompts" / "expand.md"
MOST = 3  # further questions
LONGEST = 300  # characters of one
PATIENCE_S = 10.0  # for a model's other words: then synonyms do


@dataclass(frozen=True, slots=True)
class Need:
    """What a search found too little of: passages at all (``few``), or passages with some of its words (``scarce``)."""

    few: bool
    terms: Collection[str]  # of the question
    scarce: Collection[str]  # those of them that only a few readable passages have

    def about(self, word: str) -> bool:
        """Return whether too few passages have a word of the question."""
        own = set(query_terms(word)).intersection(self.terms)
        return self.few or not own or not own.isdisjoint(self.scarce)


async def other_questions(
    query: str, profile: Profile, need: Need, *, workspace_id: UUID, synonyms: bool
) -> tuple[list[str], bool]:
    """Return at most MOST other ways to ask, and whether something that should have helped failed.

    Words that too few passages have are replaced by their synonyms, where the workspace keeps ``synonyms``; where too
    few passages were found at all, its fast chat model asks in other words besides, if there is one.
    """
    groups = await in_db(partial(_synonyms, workspace_id)) if synonyms else []
    own = replaced(query, groups, need)
    if profile.expansion != "auto" or not need.few:
        return own, False
    try:
        async with asyncio.timeout(PATIENCE_S):
            found = await _from_model(query, workspace_id)
    except (KnowSphereError, TimeoutError) as error:
        logger.warning("a question was not asked in other words: %s", error)
        return own, True
    return list(dict.fromkeys([*own, *found]))[:MOST], False


async def _from_model(query: str, workspace_id: UUID) -> list[str]:
    model = await in_db(partial(gateway.resolve, "chat", workspace_id=workspace_id, fast=True))
    if model.provider == "builtin":
        return []
    messages = [
        {"role": "system", "content": PROMPT.read_text(encoding="utf-8").strip()},
        {"role": "user", "content": query},
    ]
    reply = await gateway.chat(model, ChatRequest(messages, temperature=0, max_tokens=300, purpose="expand"))
    value = object_in(reply.text).get("questions")
    found = value if isinstance(value, list) else []
    texts = [" ".join(storable(text).split())[:LONGEST] for text in found if isinstance(text, str)]
    others = [text for text in dict.fromkeys(texts) if text and fold(text) != fold(query)]
    return others[:MOST]


def _synonyms(workspace_id: UUID) -> list[list[str]]:
    return list(Synonyms.objects.filter(workspace=workspace_id).order_by("created_at").values_list("words", flat=True))


def replaced(query: str, groups: Sequence[Sequence[str]], need: Need) -> list[str]:
    """Return the question with words of it replaced by those that mean the same, one group at a time.

    Latin words count only as whole words; Chinese ones wherever they stand. Words that enough passages have stay.
    """
    folded, found = fold(query), []
    for group in groups:
        words = [_folded(word) for word in group]
        there = next((word for word in sorted(words, key=len, reverse=True) if _stands_in(folded, word)), None)
        if there is None or not need.about(there):
            continue
        found += [_with(folded, there, word) for word in words if word != there]
    return list(dict.fromkeys(found))[:MOST]


_folded = lru_cache(maxsize=20_000)(fold)


def _places(text: str, word: str) -> list[int]:
    """Return where a word begins in a text; inside another Latin word is nowhere."""
    places, at = [], text.find(word)
    while word and at >= 0:
        around = text[max(at - 1, 0) : at] + word[:1], word[-1:] + text[at + len(word) : at + len(word) + 1]
        if not any(len(pair) == 2 and pair.isascii() and pair.isalnum() for pair in around):
            places.append(at)
        at = text.find(word, at + len(word))
    return places


def _stands_in(text: str, word: str) -> bool:
    return bool(_places(text, word))


def _with(text: str, word: str, other: str) -> str:
    for at in reversed(_places(text, word)):
        text = text[:at] + other + text[at + len(word) :]
    return text
