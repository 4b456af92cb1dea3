"""Node: begin the turn."""

from typing import Any
from uuid import UUID

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from apps.agents.compaction import refresh
from apps.agents.context import TurnContext
from apps.agents.messages import question_and_answer, split_turns
from apps.agents.state import TurnState, ids_of_turns
from apps.agents.web.addresses import addresses_in
from apps.common.errors import KnowSphereError
from apps.models.chat import Wire

PAIRS = 3


async def prepare_context(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Add this turn's question to the messages and forget what was known about the last turn.

    Writes ``messages`` (the question; earlier ones too where the checkpoint had lost them), ``turns``,
    ``recent_pairs``, the last questions with their answers, oldest first, and ``withdrawn``. Clears
    the rest.
    """
    context = runtime.context
    asked = {"role": "user", "content": context.question}
    mine = str(context.turn_id)
    earlier = state.get("messages", [])
    messages: list[Wire] | Overwrite = [asked]
    turns: list[str] | Overwrite = [mine]
    if context.rebuilt is not None:
        earlier = [{name: value for name, value in m.items() if name != "turn"} for m in context.rebuilt]
        ids = [m.get("turn", "") for m in context.rebuilt if m["role"] == "user"]
        messages, turns = Overwrite([*earlier, asked]), Overwrite([*ids, mine])
    else:
        ids = ids_of_turns(state)
    await refresh(context, ids)
    said = [str(message["content"]) for message in earlier if message["role"] == "user"]
    context.record.addresses = addresses_in([*said, context.question])
    return {
        "messages": messages,
        "turns": turns,
        "turn": context.number,
        "withdrawn": await _withdrawn(state.get("documents") or {}, context),
        "recent_pairs": [question_and_answer(turn) for turn in split_turns(earlier)[-PAIRS:]],
        "rewrite_query": "",
        "intent": "",
        "image_description": "",
        "sources": [],
        "asker_background": [],
        "remembered": [],
        "attached": "",
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
