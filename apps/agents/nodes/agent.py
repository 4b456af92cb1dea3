"""Node: the main model decides: call tools, or answer."""

from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from apps.agents.answering import answer, request_for
from apps.agents.context import TurnContext
from apps.agents.messages import INTERRUPTED_ANSWER
from apps.agents.prompts import prompt
from apps.agents.state import TurnState
from apps.models.chat import Wire

AFTER_A_ROUND = 3  # steps: tools, collect_sources, agent


async def agent(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Call the main model once, with the tools of this turn, streaming what it says.

    When a budget is used up (steps, rounds, calls, repeats, time, tokens) the model has to answer
    from what it has read: the tools stay in the request, so that its beginning stays the same, but
    may not be called. Writes ``messages``, ``fingerprint`` and ``prompt_tokens``.
    """
    context = runtime.context
    request, mark = request_for(state, context, tools=context.schemas)
    forced = exhausted(state, context, request.messages)
    if forced and request.tools:
        closing = {"role": "user", "content": prompt("answer_now")}
        request = replace(request, messages=[*request.messages, closing], tool_choice="none")
    reply = await answer(context, request, final=forced)
    if forced and not reply.content and not context.stop.is_set():
        reply = await answer(context, replace(request, tools=[], tool_choice=None), final=True)
    message: Wire = {"role": "assistant", "content": reply.content or INTERRUPTED_ANSWER}
    if reply.tool_calls and not forced:
        message = {"role": "assistant", "content": reply.content or None, "tool_calls": reply.tool_calls}
    if reply.reasoning and _is_replayed(message, context.reasoning_replay):
        message["reasoning_content"] = reply.reasoning
    return {"messages": [message], "fingerprint": mark, "prompt_tokens": context.record.prompt_tokens}


def _is_replayed(message: Wire, policy: str) -> bool:
    """Return whether later requests of this model carry what it thought; what never does is not kept."""
    return policy == "always" or (policy == "tool_turns" and "tool_calls" in message)


def exhausted(state: TurnState, context: TurnContext, messages: list[Wire]) -> bool:
    """Return whether this call has to be the last."""
    record, budget = context.record, context.budget
    return (
        state["steps_left"] <= AFTER_A_ROUND
        or record.rounds >= budget.rounds
        or record.calls >= budget.calls
        or record.repeats >= budget.repeats
        or record.elapsed_s() >= budget.wall_s
        or sum(map(context.size, messages)) >= budget.prompt_tokens
    )
