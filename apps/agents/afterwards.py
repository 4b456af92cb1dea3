"""What is done after an answer, while nobody waits: the window's step, and the conversation's note.

The note waits until no answer has followed for a moment: questions in quick succession make one note, which tells
of all of them, and no call of a model stands beside the next question.
"""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from uuid import UUID

from apps.agents.citations import MARKER, NUMBER
from apps.agents.compaction import ask, forget_withdrawn, hand_off, refresh, stepping
from apps.agents.context import Note, TurnContext
from apps.agents.messages import question_and_answer, read_in, readable, split_turns
from apps.agents.state import TurnState, ids_of_turns
from apps.common.errors import KnowSphereError

logger = logging.getLogger(__name__)

NOTED_FROM = 6  # messages: the first note is made when a conversation has more
NOTE = 700  # characters, at most; about 500 are asked for
NOTE_TOKENS = 500
SEEN = 600  # characters of a question or an answer that the note is made from
TURNS = 30  # newest turns that a note is made from at most, and the first one in any case
QUIET_S = 2.0  # after an answer, before its note is made


@dataclass(slots=True)
class _Unnoted:
    """The first turn of a conversation that its note does not tell of yet, and what ends the wait for more of them."""

    first: str
    overtaken: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


_unnoted: dict[UUID, _Unnoted] = {}


def is_due(context: TurnContext, state: TurnState) -> bool:
    """Return whether anything is to be done after this turn."""
    if context.record.stopped or context.stop.is_set():
        return False  # a conversation that is being deleted is stopped first, and keeps nothing more
    return bool(stepping(context, state)) or _is_noted(context) or bool(_cited(context))


async def afterwards(context: TurnContext, state: TurnState) -> None:
    """Count what was cited, step the window back where it is time, bring the note up to date.

    Failures keep what was there.
    """
    if cited := _cited(context):
        try:
            await context.count_citations(cited)
        except KnowSphereError as error:
            logger.warning("citations were not counted: %s", error.code)
    gone = await forget_withdrawn(context, state.get("documents") or {})  # while the turn ran, too
    state = {**state, "withdrawn": gone}
    if stepping(context, state):
        await refresh(context, ids_of_turns(state))  # the turn before may have stepped meanwhile
    if count := stepping(context, state):
        await hand_off(context, state, count, current=False)
    if _is_noted(context) and (first := await _first_when_quiet(context)):
        await _note(context, state, first)


def overtake(conversation: UUID) -> None:
    """Leave the turns whose note still waits to the turn that has just ended."""
    if waiting := _unnoted.get(conversation):
        waiting.overtaken = True
        waiting.over.set()


def hurry() -> None:
    """Make the notes that wait now."""
    for waiting in _unnoted.values():
        waiting.over.set()


async def _first_when_quiet(context: TurnContext) -> str:
    """Return the first turn that the note is to tell of, once it is quiet; "" where a newer turn takes that over."""
    conversation = context.conversation_id
    before = _unnoted.get(conversation)
    mine = _unnoted[conversation] = _Unnoted(before.first if before else str(context.turn_id))
    try:
        async with asyncio.timeout(QUIET_S):
            await mine.over.wait()
    except TimeoutError:
        pass
    finally:
        if not mine.overtaken:
            del _unnoted[conversation]
    return "" if mine.overtaken else mine.first


async def _note(context: TurnContext, state: TurnState, first: str) -> None:
    """Bring the note up to date with the turns from ``first`` on; what it was is read now, as are the rights to it."""
    try:
        context = replace(context, note=await context.read_note())
    except KnowSphereError as error:
        logger.warning("a note could not be read: %s", error.code)
        return
    withdrawn, shown = await forget_withdrawn(context, state.get("documents") or {}), state.get("documents") or {}
    turns, ids = split_turns(state.get("messages") or []), ids_of_turns(state)
    before = context.record.note
    newest = max(ids.index(first) - len(ids), -TURNS) if before and first in ids else -1 if before else -TURNS
    new = [readable(turn, withdrawn, one) for turn, one in zip(turns[newest:], ids[newest:], strict=True)]
    said = "\n".join(f"Q: {q[:SEEN]}\nA: {a[:SEEN]}" for q, a in map(question_and_answer, new))
    content = f"<note>\n{before}\n</note>\n<turns>\n{said.replace('</', '‹/')}\n</turns>"
    note = await ask(context, "note", content, max_tokens=NOTE_TOKENS)
    if not note:
        return
    try:
        read = read_in(turns[newest:], ids[newest:], shown, withdrawn)
        await context.store_note(Note(note[:NOTE], (context.note.documents if before else frozenset()) | read))
    except KnowSphereError as error:
        logger.warning("a note could not be stored: %s", error.code)


def _cited(context: TurnContext) -> frozenset[UUID]:
    """Return the documents that the answer cites."""
    text = "".join(context.record.text)
    cited = context.record.sources.pick(int(n) for marker in MARKER.finditer(text) for n in NUMBER.findall(marker[0]))
    return frozenset(s.document_id for s in cited if s.kind == "chunk" and s.document_id)


def _is_noted(context: TurnContext) -> bool:
    return context.rewrites and 2 * context.number > NOTED_FROM
