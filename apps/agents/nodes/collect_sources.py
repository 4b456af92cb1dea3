"""Node: what the answer may cite so far."""

from typing import Any

from langgraph.runtime import Runtime

from apps.agents.context import TurnContext
from apps.agents.messages import split_turns
from apps.agents.state import TurnState
from apps.agents.tools.catalog import TOOLS, Tool
from apps.agents.tools.results import numbers
from apps.models.chat import Wire


async def collect_sources(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Read this turn's retrieval results, whole, for the numbers they hold; emit ``sources``.

    Earlier turns' results, other tools' results and what a document's own text looks like do not
    count. Writes ``sources`` in the socket's shape.
    """
    context = runtime.context
    turn = split_turns(state["messages"])[-1]
    retrieval = {
        call["id"]
        for message in turn
        for call in message.get("tool_calls") or ()
        if _is_retrieval(call["function"]["name"])
    }
    shown = {
        n
        for message in turn
        if message["role"] == "tool" and message["tool_call_id"] in retrieval
        for n in numbers(_whole(context, message))
    }
    sources = [source.as_event() for source in context.record.sources.pick(shown)]
    if sources != state.get("sources"):
        context.emit("sources", {"sources": sources})
    return {"sources": sources}


def _whole(context: TurnContext, message: Wire) -> str:
    """Return a result as it was before it was put away; a vendor may give two calls the same id."""
    content = str(message["content"])
    return context.record.full.get(message["tool_call_id"], "") if content.startswith('{"__stored":') else content


def _is_retrieval(name: str) -> bool:
    if name not in TOOLS:
        return False
    tool: Tool = TOOLS.get(name)
    return tool.retrieval
