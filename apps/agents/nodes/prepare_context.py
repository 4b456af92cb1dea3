"""Node: begin the turn."""

from typing import Any
from uuid import UUID

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from apps.agents.context import TurnContext
from apps.agents.messages import question_and_answer, split_turns
from apps.agents.state import TurnState
from apps.common.errors import KnowSphereError

PAIRS = 3


async def prepare_context(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Add this turn's question to the messages and forget what was known about the last turn.

    Writes ``messages`` (the question; earlier ones too where the checkpoint had lost them),
    ``recent_pairs``, the last questions with their answers, oldest first, and ``withdrawn``. Clears
    the rest.
    """
    context = runtime.context
    asked = {"role": "user", "content": context.question}
    earlier = state.get("messages", []) if context.rebuilt is None else context.rebuilt
    return {
        "messages": [asked] if context.rebuilt is None else Overwrite([*context.rebuilt, asked]),
        "turn": context.number,
        "withdrawn": await _withdrawn(state.get("documents") or {}, context),
        "recent_pairs": [question_and_answer(turn) for turn in split_turns(earlier)[-PAIRS:]],
        "rewrite_query": "",
        "intent": "",
        "image_description": "",
        "sources": [],
        "asker_background": [],
        "remembered": [],
        "route": "",
        "notice": "",
    }


async def _withdrawn(documents: dict[str, list[str]], context: TurnContext) -> list[str]:
    """Return the earlier calls whose results the asker may not read any more: deleted, or not shared now.

    Where the database does not answer that is all of them: rights that cannot be looked at are none.
    """
    wanted = {UUID(one) for ids in documents.values() for one in ids}
    try:
        readable = await context.readable(wanted) if wanted else frozenset()
    except KnowSphereError:
        readable = frozenset()
    return [call for call, ids in documents.items() if not readable.issuperset(map(UUID, ids))]
