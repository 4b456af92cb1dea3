"""Turns leave the prompt: when, how many, and by whom it is told what they were about.

Two occasions. Where the last request filled 85 % of the model's window, turns are handed off before
the next question is understood, down to about 30 %. And a window that has grown to twice its least
number of turns, or past its share of the model's window, steps back after the answer, though never below that
number, so that nobody waits for it; until that is stored the turns stay in the view.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from apps.agents.context import TurnContext
from apps.agents.handoff import Handoff, answer_of, extended, handed_off, transcript
from apps.agents.messages import read_in, readable, split_turns
from apps.agents.prompts import prompt
from apps.agents.state import TurnState, ids_of_turns
from apps.common.errors import KnowSphereError
from apps.models.chat import ChatRequest, Wire

logger = logging.getLogger(__name__)

FULL = 0.85  # of the window: the last request's share at which turns must go
LEFT = 0.30  # of the window: what stays
STEP = 0.60  # of the window: what finished turns may hold before the window steps back after an answer
STEPPED = 0.30
HOLDS = 0.45  # of the window: a step that would leave more is not worth a broken prefix
PATIENCE_S = 25.0
NOTES_TOKENS = 900
LOOKED_BACK = 100  # turns, for the last handoff
TRANSCRIPT = 40_000  # characters


async def refresh(context: TurnContext, turns: Sequence[str]) -> None:
    """Read what stands for the turns that have left the prompt; where it cannot be read all of them stay."""
    answers = [answer_of(turn) for turn in turns[-LOOKED_BACK:] if turn]
    try:
        context.record.handoff = await context.handoff_of(answers) if answers else Handoff()
    except KnowSphereError as error:
        logger.warning("the handoff could not be read: %s", error.code)


async def forget_withdrawn(context: TurnContext, documents: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the earlier calls whose results the asker may not read any more: deleted, or not shared now.

    What was made from such documents leaves the handoff, and the note with it. Where the database does not answer
    that is all of them: rights that cannot be looked at are none.
    """
    record = context.record
    known = {*context.note.documents, *record.handoff.sources(), *(one for ids in documents.values() for one in ids)}
    try:
        found = await context.readable({UUID(one) for one in known}) if known else frozenset()
    except KnowSphereError:
        found = frozenset()
    gone = known.difference(map(str, found))
    record.handoff = record.handoff.without(gone)
    record.note = "" if gone & context.note.documents else context.note.text
    return [call for call, ids in documents.items() if gone.intersection(ids)]


def finished_in_view(state: TurnState, handoff: Handoff, *, current: bool) -> tuple[list[list[Wire]], list[str]]:
    """Return the finished turns that the prompt shows, with their ids; ``current``: the last turn is not over."""
    turns, ids = split_turns(state.get("messages") or []), ids_of_turns(state)
    if current:
        turns, ids = turns[:-1], ids[:-1]
    first = handed_off(ids, handoff)
    return turns[first:], ids[first:]


def overflowing(context: TurnContext, state: TurnState) -> int:
    """Return how many turns must go before this question is asked; 0 as long as the last request fitted.

    What the vendor counted is what counts; where it is not known the prompt's estimate stands for it.
    """
    turns, _ids = finished_in_view(state, context.record.handoff, current=True)
    if not turns:
        return 0
    sizes = [sum(map(context.size, turn)) for turn in turns]
    fixed = context.fixed_tokens + context.size({"content": context.record.handoff.text()})
    estimated = fixed + sum(sizes)
    counted = state.get("prompt_tokens") or 0
    known = counted if counted and context.rebuilt is None else estimated
    if known < FULL * context.window:
        return 0
    scale = known / estimated  # the vendor's tokens for one of ours
    left = LEFT * context.window / scale - fixed
    return max(1, _dropped(sizes, most=left))


def stepping(context: TurnContext, state: TurnState) -> int:
    """Return how many turns leave the view after this answer; 0 between two steps of the window.

    The newest ``keep_turns`` always stay. Where even they are large no step is made for size, or each answer would
    make one: the prompt grows until it is full, see ``overflowing``.
    """
    turns, _ids = finished_in_view(state, context.record.handoff, current=False)
    sizes = [sum(map(context.size, turn)) for turn in turns]
    spare = len(turns) - context.keep_turns
    if spare <= 0:
        return 0
    if spare >= context.keep_turns:
        return spare
    large = sum(sizes) > STEP * context.window and sum(sizes[spare:]) <= HOLDS * context.window
    return min(_dropped(sizes, most=STEPPED * context.window), spare) if large else 0


def _dropped(sizes: Sequence[int], *, most: float) -> int:
    """Return how many of the oldest turns go, so that the rest is at most ``most`` tokens."""
    first, held = 0, sum(sizes)
    while first < len(sizes) and held > most:
        held -= sizes[first]
        first += 1
    return first


async def hand_off(context: TurnContext, state: TurnState, count: int, *, current: bool) -> Handoff | None:
    """Hand the oldest ``count`` finished turns of the view off, and store that; None where it could not be.

    A model tells what was done; where it fails, the turns' own words do. Another handoff of the same
    conversation that was quicker wins.
    """
    before = context.record.handoff
    turns, ids = finished_in_view(state, before, current=current)
    while count and not ids[count - 1]:
        count += 1 if count < len(ids) else -count  # a turn whose id is lost goes with the next one
    if not count:
        return None
    withdrawn, shown = state.get("withdrawn") or (), state.get("documents") or {}
    leaving = [readable(turn, withdrawn, one) for turn, one in zip(turns[:count], ids[:count], strict=True)]
    told = await _told(context, leaving)
    handoff = extended(before, leaving, ids[:count], told, read_in(turns[:count], ids[:count], shown, withdrawn))
    try:
        stored = await context.store_handoff(handoff)
    except KnowSphereError as error:
        logger.warning("a handoff could not be stored: %s", error.code)
        return None
    if stored:
        context.record.handoff = handoff
    return handoff if stored else None


async def _told(context: TurnContext, turns: Sequence[Sequence[Wire]]) -> dict[str, Any]:
    content = f"<turns>\n{transcript(turns)[:TRANSCRIPT]}\n</turns>"
    text = await ask(context, "handoff", content, max_tokens=NOTES_TOKENS)
    try:
        told = orjson.loads(text[text.find("{") : text.rfind("}") + 1])
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}


async def ask(context: TurnContext, purpose: str, content: str, *, max_tokens: int) -> str:
    """Ask the small model something about the conversation; "" where it does not say."""
    if not context.rewrites:
        return ""
    request = ChatRequest(
        messages=[{"role": "system", "content": prompt(purpose)}, {"role": "user", "content": content}],
        temperature=0.0,
        max_tokens=max_tokens,
        purpose=purpose,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            return (await context.ask_fast(request)).text.strip()
    except (KnowSphereError, TimeoutError) as error:
        logger.info("no %s: %s", purpose, getattr(error, "code", "too slow"))
        return ""
