"""Other ways to ask a question that found too little: from a model, or from the workspace's own synonyms."""

import asyncio
import logging
from functools import partial
from pathlib import Path
from uuid import UUID

from apps.common.database import in_db
from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.knowledge.index_text import fold
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


async def other_questions(query: str, profile: Profile, *, workspace_id: UUID) -> tuple[list[str], bool]:
    """Return at most MOST other ways to ask, and whether something that should have helped failed.

    The workspace's fast chat model writes them where there is one; else, and where it fails, words of the
    question are replaced by their synonyms.
    """
    failed = False
    if profile.expansion == "auto":
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await _from_model(query, workspace_id)
        except (KnowSphereError, TimeoutError) as error:
            logger.warning("a question was not asked in other words: %s", error)
            found, failed = [], True
        if found:
            return found, False
    rows = await in_db(partial(_synonyms, workspace_id))
    return replaced(query, rows), failed


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


def replaced(query: str, groups: list[list[str]]) -> list[str]:
    """Return the question with words of it replaced by those that mean the same, one group at a time.

    Latin words count only as whole words; Chinese ones wherever they stand.
    """
    folded, found = fold(query), []
    for group in groups:
        words = [fold(word) for word in group]
        there = next((word for word in sorted(words, key=len, reverse=True) if _stands_in(folded, word)), None)
        if there is None:
            continue
        found += [_with(folded, there, word) for word in words if word != there]
    return list(dict.fromkeys(found))[:MOST]


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
