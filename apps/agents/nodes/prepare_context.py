"""Node: begin the turn."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from apps.agents.compaction import forget_withdrawn, refresh
from apps.agents.context import TurnContext
from apps.agents.messages import question_and_answer, readable, split_turns
from apps.agents.state import TurnState, ids_of_turns
from apps.agents.web.addresses import addresses_in
from apps.models.chat import Wire

PAIRS = 3
ROW = ("turn", "documents")  # what a message that was rebuilt carries of its turn


async def prepare_context(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Add this turn's question to the messages and forget what was known about the last turn.

    Writes ``messages`` (the question; earlier ones too where the checkpoint had lost them), ``turns``,
    ``recent_pairs``, the last questions with their answers, oldest first, and ``withdrawn``. Clears
    the rest, and the plan where something was withdrawn: it may tell of it.
    """
    context = runtime.context
    asked = {"role": "user", "content": context.question}
    mine = str(context.turn_id)
    earlier, lost = state.get("messages", []), dict[str, list[str]]()
    messages: list[Wire] | Overwrite = [asked]
    turns: list[str] | Overwrite = [mine]
    if context.rebuilt is not None:
        earlier = [{name: value for name, value in m.items() if name not in ROW} for m in context.rebuilt]
        asked_then = [m for m in context.rebuilt if m["role"] == "user"]
        ids = [m.get("turn", "") for m in asked_then]
        lost = {turn: m["documents"] for turn, m in zip(ids, asked_then, strict=True) if m.get("documents")}
        messages, turns = Overwrite([*earlier, asked]), Overwrite([*ids, mine])
    else:
        ids = ids_of_turns(state)
    await refresh(context, ids)
    withdrawn = await forget_withdrawn(context, {**(state.get("documents") or {}), **lost})
    pairs = list(zip(split_turns(earlier), ids, strict=True))[-PAIRS:]
    said = [str(message["content"]) for message in earlier if message["role"] == "user"]
    context.record.addresses = addresses_in([*said, context.question])
    return {
        "messages": messages,
        "turns": turns,
        "turn": context.number,
        "documents": lost,
        "withdrawn": withdrawn,
        "recent_pairs": [question_and_answer(readable(turn, withdrawn, one)) for turn, one in pairs],
        **({"plan": []} if withdrawn else {}),
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
