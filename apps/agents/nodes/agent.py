"""Node: the main model decides: call tools, or answer."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import orjson
from langgraph.runtime import Runtime

from apps.agents.answering import Reply, answer, closed, gap, last_request, request_for, without_tools
from apps.agents.context import TurnContext
from apps.agents.errors import EmptyAnswer
from apps.agents.evidence import cited_unread, nothing_said, owes_search, owes_something
from apps.agents.messages import INTERRUPTED_ANSWER
from apps.agents.rewriting import leans
from apps.agents.state import TurnState
from apps.models.chat import Wire

AFTER_A_ROUND = 3  # steps: tools, collect_sources, agent


async def agent(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Call the main model once, with the tools of this turn, streaming what it says.

    When a budget is used up (steps, rounds, calls, repeats, time, tokens) or rounds bring nothing new, the
    model has to answer from what it has read: the tools stay in the request, so that its beginning stays
    the same, but may not be called. As long as an answer could not stand on anything it is held back: one
    without a search becomes a search, one that cites what was not read becomes a reading, one after
    searches that found nothing becomes the sentence that says so. Writes ``messages``, ``fingerprint`` and
    ``prompt_tokens``.
    """
    context = runtime.context
    request, mark = request_for(state, context, tools=context.schemas)
    context.record.room = context.budget.prompt_tokens - _size(context, request.messages)
    forced = exhausted(state, context)
    if forced and request.tools:
        request = closed(request)
    held = owes_something(state, context, forced=forced)
    try:
        reply = await answer(context, request, final=forced, held=held)
        if forced and not reply.content and not context.stop.is_set():
            request, mark = without_tools(context, request, mark)
            reply = await answer(context, request, final=True, held=held)
    except EmptyAnswer:
        if not nothing_said(context) and not (forced and context.record.rounds):
            raise
        reply = Reply("")
    stopped = context.record.stopped
    calls = [] if forced else reply.tool_calls
    sentence = ""
    if not calls and held:
        owed = [] if forced else _owed(state, context, reply)
        sentence = "" if owed or stopped else nothing_said(context)
        if owed or (stopped and nothing_said(context)):
            reply = replace(reply, content="", held="")  # what it said stood on nothing, so nobody hears it
        calls = [] if stopped else owed
    if forced and not (reply.content or sentence or stopped):
        sentence = gap(context.record) + context.say("no_answer")
    if sentence:
        reply = Reply(sentence.strip(), held=sentence)
    if reply.held:
        context.token(reply.held)
    message: Wire = {"role": "assistant", "content": reply.content or INTERRUPTED_ANSWER}
    if calls:
        message = {"role": "assistant", "content": reply.content or None, "tool_calls": calls}
    if reply.reasoning and _is_replayed(message, context.reasoning_replay):
        message["reasoning_content"] = reply.reasoning
    return {"messages": [message], **last_request(context, request, mark)}


def _is_replayed(message: Wire, policy: str) -> bool:
    """Return whether later requests of this model carry what it thought; what never does is not kept."""
    return policy == "always" or (policy == "tool_turns" and "tool_calls" in message)


def _owed(state: TurnState, context: TurnContext, reply: Reply) -> list[Wire]:
    """Return the call that has to come before this answer; each kind once a turn."""
    if owes_search(state, context):
        name = "doc_retrieval" if "doc_retrieval" in context.tools else "web_search"
        query = _searched(state, context)[: 300 if name == "web_search" else 500]
        return [_call(name, {"query": query})]
    if unread := cited_unread(context, reply.content):
        return [_call("list_chunks", {"ids": [f"c{n}" for n in unread]})]
    return []


def _searched(state: TurnState, context: TurnContext) -> str:
    """Return what is searched for in the model's stead.

    A question that leans on the one before, and that nobody restored, takes that along.
    """
    query, pairs = state.get("rewrite_query") or context.question, state.get("recent_pairs") or []
    return f"{pairs[-1][0][:200]} {query}" if pairs and query == context.question and leans(query) else query


def _call(name: str, arguments: dict[str, Any]) -> Wire:
    text = orjson.dumps(arguments).decode()
    return {"id": f"call_{uuid4().hex[:16]}", "type": "function", "function": {"name": name, "arguments": text}}


def _size(context: TurnContext, messages: list[Wire]) -> int:
    """Return about how many tokens a request has, its schemas and system message included."""
    return context.fixed_tokens + sum(map(context.size, messages[1:]))


def exhausted(state: TurnState, context: TurnContext) -> bool:
    """Return whether this call has to be the last."""
    record, budget = context.record, context.budget
    return (
        state["steps_left"] <= AFTER_A_ROUND
        or record.rounds >= budget.rounds
        or record.calls >= budget.calls
        or record.repeats >= budget.repeats
        or record.stale >= budget.stale
        or record.elapsed_s() >= budget.wall_s
        or record.usage.prompt + record.usage.completion >= budget.tokens
        or record.room <= 0
    )
