"""The conversation graph: which node follows which.

START → prepare_context → manage_memory → query_understand → (generate → END | agent);
agent → (tools → collect_sources → agent | END).

Importing this module imports LangGraph, which is slow: ``runner`` does it at the first turn.
"""

from collections.abc import Awaitable, Callable
from copy import copy
from functools import cache
from time import monotonic
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from apps.agents.context import TurnContext
from apps.agents.nodes.agent import agent
from apps.agents.nodes.collect_sources import collect_sources
from apps.agents.nodes.generate import generate
from apps.agents.nodes.manage_memory import manage_memory
from apps.agents.nodes.prepare_context import prepare_context
from apps.agents.nodes.query_understand import query_understand
from apps.agents.nodes.tools import tools
from apps.agents.state import TurnState

Node = Callable[[TurnState, Runtime[TurnContext]], Awaitable[dict[str, Any]]]
Graph = CompiledStateGraph[TurnState, TurnContext, TurnState, TurnState]

BEFORE_THE_AGENT = 3  # steps
A_ROUND = 3  # steps: agent, tools, collect_sources


def recursion_limit(rounds: int) -> int:
    """Return the steps that so many rounds and a forced answer need, with room for LangGraph's own."""
    return BEFORE_THE_AGENT + A_ROUND * (rounds + 1) + 3


@cache
def build() -> Graph:
    """Return the compiled graph, without a checkpointer: each turn brings its own."""
    graph = StateGraph(TurnState, context_schema=TurnContext)
    for node in (prepare_context, manage_memory, query_understand, generate, agent, tools, collect_sources):
        graph.add_node(node.__name__, _as_step(node.__name__, node))
    graph.add_edge(START, "prepare_context")
    graph.add_edge("prepare_context", "manage_memory")
    graph.add_edge("manage_memory", "query_understand")
    graph.add_conditional_edges("query_understand", after_understanding)
    graph.add_edge("generate", END)
    graph.add_conditional_edges("agent", after_agent)
    graph.add_edge("tools", "collect_sources")
    graph.add_edge("collect_sources", "agent")
    return graph.compile()


def with_saver(saver: BaseCheckpointSaver[str]) -> Graph:
    """Return the compiled graph with a turn's own checkpointer: a shallow copy, for LangGraph's validates it anew."""
    own = copy(build())
    own.checkpointer = saver
    return own


# Decisions are coroutines, for LangGraph hands plain functions to a thread.


async def after_understanding(state: TurnState) -> Literal["generate", "agent"]:
    """Follow the route that ``query_understand`` wrote."""
    return "agent" if state["route"] == "agent" else "generate"


async def after_agent(state: TurnState) -> Literal["tools", "__end__"]:
    """Run the calls that the model made, or end."""
    return "tools" if state["messages"][-1].get("tool_calls") else "__end__"


def _as_step(name: str, node: Node) -> Any:
    """Tell the asker when a node begins and how it ended."""

    async def step(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        emit = runtime.context.emit
        began = monotonic()

        def tell(status: str) -> None:
            elapsed = round((monotonic() - began) * 1000)
            emit("step", {"name": name, "status": status, "elapsed_ms": elapsed, "detail": ""})

        tell("started")
        try:
            result = await node(state, runtime)
        except BaseException:
            tell("failed")
            raise
        tell("finished")
        return result

    return step
