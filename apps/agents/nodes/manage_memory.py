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
    """Store explicit "remember: …" statements of the question; bring in what the asker said before.

    Writes ``remembered`` (what was stored now) and ``asker_background``. A memory that cannot be
    written costs the turn a warning, not its answer.
    """
    context = runtime.context
    statements = [match.strip() for match in STATEMENT.findall(context.question)]
    if statements:
        try:
            await context.remember(statements)
        except KnowSphereError as error:
            logger.warning("memory could not be written: %s", error.code)
            detail = context.say("no_memory")
            context.emit("step", {"name": "memory", "status": "failed", "elapsed_ms": 0, "detail": detail})
            statements = []
    return {"remembered": statements, "asker_background": list(context.background)}


def only_remember(question: str) -> bool:
    """Return whether a question says nothing but what to remember."""
    return bool(STATEMENT.search(question)) and not STATEMENT.sub("", question).strip()
