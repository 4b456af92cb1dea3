"""Node: keep what the asker says to remember, and bring back what they said before."""

import logging
import re
from typing import Any

from langgraph.runtime import Runtime

from apps.agents.compaction import hand_off, overflowing
from apps.agents.context import TurnContext
from apps.agents.state import TurnState
from apps.common.errors import KnowSphereError

logger = logging.getLogger(__name__)

# Explicit statements only, each on a line of its own; a question ("Do you remember …?") is none.
STATEMENT = re.compile(
    r"^[ \t]*(?:"
    r"(?:please[ \t]+|(?:can|could|will|would)[ \t]+you[ \t]+(?:please[ \t]+)?)?"
    r"(?:remember|keep[ \t]+in[ \t]+mind|make[ \t]+a[ \t]+note|note)"
    r"(?:[ \t]+that\b[ \t]*[:：,，]?|[ \t]*[:：])"
    r"|please[ \t]+remember(?=[ \t]+(?:my|our|i|we)\b)"
    r"|(?:请|麻烦)?你?(?:帮我|替我)?(?:记住|记一下|记下来?|牢记)(?:了|一下)?[ \t]*[:：,，]"
    r"|(?:请|麻烦|帮我|请帮我|请你)(?:记住|记一下|记下来?|牢记)"
    r"|(?:请)?记住(?=我们?)"
    r"|(?:请)?(?:别忘了|不要忘记)[ \t]*[:：,，]"
    r")[ \t]*(\S[^\n]*?)[ \t]*$(?<![?？吗])(?<![吗?？][。.])",
    re.IGNORECASE | re.MULTILINE,
)


async def manage_memory(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Hand turns off where the prompt is full; store "remember: …" statements; bring in what was said before.

    Writes ``remembered`` (what was stored now), ``asker_background`` and ``handoff_shown``. A memory that
    cannot be written costs the turn a warning, not its answer. A handoff is shown to the asker once, be
    it made here or behind the last answer.
    """
    context = runtime.context
    if count := overflowing(context, state):
        context.record.compacted = await hand_off(context, state, count, current=True) is not None
    shown = _show_handoff(context, state.get("handoff_shown", ""))
    statements = [match.strip() for match in STATEMENT.findall(context.question)]
    if statements:
        try:
            await context.remember(statements)
        except KnowSphereError as error:
            logger.warning("memory could not be written: %s", error.code)
            detail = context.say("no_memory")
            context.emit("step", {"name": "memory", "status": "failed", "elapsed_ms": 0, "detail": detail})
            statements = []
    return {"remembered": statements, "asker_background": list(context.background), "handoff_shown": shown}


def _show_handoff(context: TurnContext, shown: str) -> str:
    handoff = context.record.handoff
    if handoff.upto is None or str(handoff.upto) == shown:
        return shown
    data = {"turns": handoff.turns, "text": handoff.text(), "summary_upto_message_id": str(handoff.upto)}
    context.emit("handoff", data)
    return str(handoff.upto)


def only_remember(question: str) -> bool:
    """Return whether a question says nothing but what to remember."""
    return bool(STATEMENT.search(question)) and not STATEMENT.sub("", question).strip()
