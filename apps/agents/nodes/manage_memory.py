"""Node: keep what the asker says to remember, and bring back what they said before."""

import logging
import re
from typing import Any

from langgraph.runtime import Runtime

from apps.agents.compaction import hand_off, overflowing
from apps.agents.context import TurnContext
from apps.agents.rewriting import INSTRUCTION
from apps.agents.state import TurnState
from apps.common.errors import KnowSphereError

logger = logging.getLogger(__name__)

# Explicit statements only, each on a line of its own; a question ("Do you remember …?") is none.
STATEMENT = re.compile(
    r"^[ \t]*(?:"
    r"(?:please[ \t]+|(?:can|could|will|would)[ \t]+you[ \t]+(?:please[ \t]+)?)?"
    r"(?:remember|keep[ \t]+in[ \t]+mind|make[ \t]+a[ \t]+note|note(?=[ \t]+that\b))"
    r"(?:[ \t]+that\b[ \t]*[:：,，]?|[ \t]*[:：])"
    r"|please[ \t]+remember(?=[ \t]+(?:my|our|i|we)\b)"
    r"|(?:请|麻烦)?你?(?:帮我|替我)?(?:记住|记一下|记下来?|牢记)(?:了|一下)?[ \t]*[:：,，]"
    r"|(?:请|麻烦|帮我|请帮我|请你)(?:记住|记一下|记下来?|牢记)"
    r"|(?:请)?记住(?=我们?)"
    r"|(?:请)?(?:别忘了|不要忘记)[ \t]*[:：,，]"
    r")[ \t]*(?=\S)",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"(?<=[。！？!?；;])|(?<=\.)\s+(?=\S)")
ASKS = re.compile(
    r"[?？]\s*$|[吗呢][。.]?\s*$|^\s*(?:what|which|who|whose|when|where|why|how)\b|^\s*(?:什么|哪|怎么|为什么|如何|多少)",
    re.IGNORECASE,
)


def statements(question: str) -> tuple[list[str], str]:
    """Return what a question says to remember, and the rest of it.

    A statement stands in the first lines or in the last ones: what stands between others is quoted, and was said by
    somebody else. It goes to the end of its line, or to the sentence that asks or orders something else.
    """
    lines = question.splitlines()
    said = [_said(line) for line in lines]
    first = next((i for i, (kept, _rest) in enumerate(said) if not kept and lines[i].strip()), len(lines))
    last = next((i for i in range(len(lines) - 1, -1, -1) if not said[i][0] and lines[i].strip()), -1)
    outside = [i < first or i > last for i in range(len(lines))]
    kept = [one for (one, _rest), counts in zip(said, outside, strict=True) if one and counts]
    rest = [r if counts else line for line, (_one, r), counts in zip(lines, said, outside, strict=True)]
    return kept, "\n".join(rest).strip()


def _said(line: str) -> tuple[str, str]:
    """Return what one line says to remember, "" if nothing, and what else it says."""
    found = STATEMENT.match(line)
    if found is None:
        return "", line
    sentences = SENTENCE.split(line[found.end() :])
    count = next((i for i, one in enumerate(sentences) if ASKS.search(one) or (i and INSTRUCTION.match(one))), None)
    kept = " ".join(one.strip() for one in sentences[:count]).strip()
    return (kept, " ".join(sentences[len(sentences) if count is None else count :]).strip()) if kept else ("", line)


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
    said, _rest = statements(context.question)
    if said:
        try:
            await context.remember(said)
            detail = " · ".join(said)[:200]
            context.emit("step", {"name": "remembered", "status": "finished", "elapsed_ms": 0, "detail": detail})
        except KnowSphereError as error:
            logger.warning("memory could not be written: %s", error.code)
            detail = context.say("no_memory") if error.retryable else error.message  # "ask again" helps no one there
            context.emit("step", {"name": "memory", "status": "failed", "elapsed_ms": 0, "detail": detail})
            said = []
    return {"remembered": said, "asker_background": list(context.background), "handoff_shown": shown}


def _show_handoff(context: TurnContext, shown: str) -> str:
    handoff = context.record.handoff
    if handoff.upto is None or str(handoff.upto) == shown:
        return shown
    data = {"turns": handoff.turns, "text": handoff.text(), "summary_upto_message_id": str(handoff.upto)}
    context.emit("handoff", data)
    return str(handoff.upto)


def only_remember(question: str) -> bool:
    """Return whether a question says nothing but what to remember."""
    said, rest = statements(question)
    return bool(said) and not rest
