"""What is done after an answer, while nobody waits: the window's step, and the conversation's note."""

import logging
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
TURNS = 30  # newest turns that the first note is made from


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
    if not _is_noted(context):
        return
    turns, ids = split_turns(state.get("messages") or []), ids_of_turns(state)
    before = context.record.note
    newest = -1 if before else -TURNS
    withdrawn, shown = state.get("withdrawn") or (), state.get("documents") or {}
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
