"""Node: begin the turn."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from apps.agents.context import TurnContext
from apps.agents.messages import question_and_answer, split_turns
from apps.agents.state import TurnState

PAIRS = 3


async def prepare_context(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Add this turn's question to the messages and forget what was known about the last turn.

    Writes ``messages`` (the question; earlier ones too where the checkpoint had lost them) and
    ``recent_pairs``, the last questions with their answers, oldest first. Clears the rest.
    """
    context = runtime.context
    asked = {"role": "user", "content": context.question}
    earlier = state.get("messages", []) if context.rebuilt is None else context.rebuilt
    return {
        "messages": [asked] if context.rebuilt is None else Overwrite([*context.rebuilt, asked]),
        "turn": context.number,
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
