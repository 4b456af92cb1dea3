"""One streamed call of the main model: the request's layout, the answer's way to the asker."""

import logging
import zlib
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from apps.agents.citations import CitationFilter
from apps.agents.context import TurnContext, TurnRecord
from apps.agents.context_layout import lay_out, turn_context
from apps.agents.errors import EmptyAnswer
from apps.agents.handoff import Handoff, handed_off
from apps.agents.prefix import SWITCH, UNNAMED, fingerprint, place_of_break, request_bytes, shared_length
from apps.agents.prompts import identity, prompt
from apps.agents.state import TurnState, ids_of_turns
from apps.common.text import storable
from apps.models.chat import ChatRequest, Wire

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, as it said it, and the calls that it wants."""

    content: str
    tool_calls: list[Wire] = field(default_factory=list)
    reasoning: str = ""
    held: str = ""  # its text for the asker, where it was held back


def request_for(state: TurnState, context: TurnContext, *, tools: Sequence[Wire]) -> tuple[ChatRequest, bytes]:
    """Lay out one request and measure what it repeats of the one before.

    Returns:
        The request, and the fingerprint to keep for the next one.
    """
    background = turn_context(
        today=context.today,
        question=context.question,
        rewrite=state.get("rewrite_query", ""),
        background=state.get("asker_background") or (),
        image=state.get("image_description", ""),
    )
    messages = lay_out(
        state["messages"],
        identity=identity(context.agent),
        switches=context.switches,
        turn_context=background,
        attached=state.get("attached", ""),
        handoff=context.record.handoff.text(),
        handed_off=handed_off(ids_of_turns(state), context.record.handoff),
        withdrawn=state.get("withdrawn") or (),
        ids=ids_of_turns(state),
    )
    request = ChatRequest(
        messages=messages,
        tools=list(tools),
        tool_choice="auto" if tools else None,
        temperature=context.agent.temperature,
        max_tokens=context.agent.max_tokens,
        thinking=context.agent.thinking,
        stable=len(identity(context.agent)),
        cache_key=str(context.conversation_id),
    )
    sent = request_bytes(request.tools, messages)
    mark = fingerprint(sent)
    _measure(state, context, request, sent, mark)
    return request, mark


def _measure(state: TurnState, context: TurnContext, request: ChatRequest, sent: bytes, mark: bytes) -> None:
    """Write down what this request repeats of the one before, and where it stops to."""
    record, before = context.record, state.get("fingerprint", b"")
    beginning = beginning_of(request, record.handoff)
    last = state.get("beginning") or []
    place = place_of_break(
        before,
        mark,
        first_of_turn=not record.requests,
        head_changed=last[:1] != beginning[:1],
        handoff_changed=last[1:] != beginning[1:],
        stepped=not record.compacted,
    )
    if place == UNNAMED:
        logger.warning("turn %s: the prompt's beginning changed within the turn", context.turn_id)
    reused = shared_length(before, mark)
    record.requests.append({"bytes": len(sent), "reused": reused, "break": place})
    record.request_bytes += len(sent)
    record.reused_bytes += reused


def beginning_of(request: ChatRequest, handoff: Handoff) -> list[str]:
    """Return what stands for the beginning of a request: tools with system message, and the handoff."""
    head = request_bytes(request.tools, request.messages[:1])
    return [format(zlib.crc32(head), "08x"), str(handoff.upto)]


def closed(request: ChatRequest) -> ChatRequest:
    """Return a request whose tools may not be called; its last message says so, for no vendor takes two in a row."""
    *earlier, last = request.messages
    told = {**last, "content": f"{last['content']}\n\n{prompt('answer_now')}"}
    return replace(request, messages=[*earlier, told], tool_choice="none")


def without_tools(context: TurnContext, request: ChatRequest, mark: bytes) -> tuple[ChatRequest, bytes]:
    """Return a request without tools, for a model that calls them all the same, and its fingerprint."""
    bare = replace(request, tools=[], tool_choice=None)
    sent = request_bytes((), bare.messages)
    now = fingerprint(sent)
    reused = shared_length(mark, now)
    context.record.requests.append({"bytes": len(sent), "reused": reused, "break": SWITCH})
    context.record.request_bytes += len(sent)
    context.record.reused_bytes += reused
    return bare, now


def gap(record: TurnRecord) -> str:
    """Return what stands before more text: the model may have spoken before it called a tool."""
    return "\n\n" if record.text and not record.text[-1].endswith("\n") else ""


async def answer(context: TurnContext, request: ChatRequest, *, final: bool = False, held: bool = False) -> Reply:
    """Stream one call: text to the asker with its markers put right, calls to the caller.

    ``final`` ignores calls that a model makes although it may not. ``held`` keeps the text back: it comes with
    the reply, and nobody has seen it. A stop ends it early with what
    was said so far.

    Raises:
        EmptyAnswer: the model neither said anything in this turn nor called a tool.
    """
    record = context.record
    markers = CitationFilter(record.sources.known)
    said: list[str] = []
    thought: list[str] = []
    kept: list[str] = []
    calls: list[Wire] = []
    if context.stop.is_set():
        record.stopped = True
        return Reply("")
    between = gap(record)
    try:
        async with aclosing(context.stream(request)) as deltas:
            async for delta in deltas:
                if delta.reasoning:
                    thought.append(storable(delta.reasoning))
                    context.emit("reasoning.delta", {"text": delta.reasoning})
                if text := storable(delta.text):
                    said.append(text)
                    between = _pass_on(context, markers.feed(text), between, kept if held else None)
                if delta.tool_calls and not final:
                    calls = [_storable_call(call) for call in delta.tool_calls]
                if delta.usage:
                    record.usage += delta.usage
                    record.prompt_tokens = delta.usage.prompt
                record.cut = delta.finish_reason == "length"
    finally:
        _pass_on(context, markers.finish(), between, kept if held else None)
    record.unknown_citations += markers.unknown
    record.stopped = context.stop.is_set()
    content = "".join(said)
    if not content.strip() and not calls and not record.stopped and not (final and request.tools):
        raise EmptyAnswer
    return Reply(content, calls, "".join(thought), "".join(kept))


def _storable_call(call: Wire) -> Wire:
    function = call["function"]
    name, arguments = storable(str(function["name"])), function.get("arguments")
    text = storable(arguments) if isinstance(arguments, str) else arguments
    return {**call, "function": {**function, "name": name, "arguments": text}}


def _pass_on(context: TurnContext, text: str, between: str, kept: list[str] | None) -> str:
    """Send text; ``between`` goes before the first of it. Returns what still has to go before."""
    if not text:
        return between
    if kept is None:
        context.token(between + text)
    else:
        kept.append(between + text)
    return ""


def last_request(context: TurnContext, request: ChatRequest, mark: bytes) -> dict[str, Any]:
    """Return what the state keeps of a request, for the next one to be measured against."""
    beginning = beginning_of(request, context.record.handoff)
    return {"fingerprint": mark, "beginning": beginning, "prompt_tokens": context.record.prompt_tokens}
