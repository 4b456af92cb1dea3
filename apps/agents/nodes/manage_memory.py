"""Node: keep what the asker says to remember, and bring back what they said before."""

import logging
import re
from typing import Any

from langgraph.runtime import Runtime

from apps.agents.context import TurnContext
from apps.agents.state import TurnState
from apps.common.errors import KnowSphereError

logger = logging.getLogger(__name__)

STATEMENT = re.compile(
    r"^[ \t]*(?:please[ \t]+)?(?:remember(?:[ \t]+that)?[ \t]*[:：]|(?:请)?记住(?:了)?[ \t]*[:：,，])[ \t]*(\S[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)


async def manage_memory(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Store explicit "remember: …" statements of the question, then recall the asker's own items.

    Writes ``remembered`` (what was stored now) and ``asker_background``. Memory that does not answer
    costs the turn its background, not its answer.
    """
    context = runtime.context
    statements = [match.strip() for match in STATEMENT.findall(context.question)]
    try:
        if statements:
            await context.remember(statements)
        background = await context.recall(context.question)
    except (KnowSphereError, OSError) as error:
        logger.warning("memory did not answer: %s", type(error).__name__)
        context.emit(
            "step", {"name": "memory", "status": "failed", "elapsed_ms": 0, "detail": context.say("no_memory")}
        )
        return {"remembered": [], "asker_background": []}
    return {"remembered": statements, "asker_background": background}


def only_remember(question: str) -> bool:
    """Return whether a question says nothing but what to remember."""
    return bool(STATEMENT.search(question)) and not STATEMENT.sub("", question).strip()
