"""Node: run the calls that the model made, side by side. It never raises."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import monotonic
from typing import Any
from uuid import UUID

import orjson
from langgraph.runtime import Runtime
from pydantic import ValidationError

from apps.agents.compaction import forget_withdrawn
from apps.agents.context import TurnContext, TurnRecord
from apps.agents.externalising import POINTER, within_limits, within_room
from apps.agents.messages import arguments_in
from apps.agents.state import TurnState, ids_of_turns
from apps.agents.tools.catalog import Tool, ToolResult
from apps.agents.tools.results import numbers, parts
from apps.common.errors import KnowSphereError, NotFound
from apps.common.text import storable
from apps.models.chat import Wire

logger = logging.getLogger(__name__)

TRIES = 4  # the first and at most three more
WAIT_S = 0.2
ARGUMENTS_LIMIT = 20_000  # characters
LONGEST = 2_000_000  # characters of a result, stored or not
STOPPED = "[stopped before this tool returned]"
_STOPPED = ToolResult(STOPPED, ok=False)


async def tools(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Answer every call of the last message, in its order, whatever happens.

    Wrong arguments, unknown tools and failures go back to the model as text. A stop ends the calls
    that are still running; each still gets a message. Writes ``messages``, ``documents`` and, of
    earlier turns, ``withdrawn``.
    """
    context = runtime.context
    calls: list[Wire] = state["messages"][-1]["tool_calls"]
    record = context.record
    record.rounds += 1
    record.room -= POINTER * len(calls)
    before = _known(record)
    tasks = [asyncio.ensure_future(_shown(context, call)) for call in calls]
    stopping = asyncio.ensure_future(context.stop.wait())
    running = set(tasks)
    try:
        while running and not stopping.done():
            done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            running -= done
    finally:
        for task in (stopping, *tasks):
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    named = [context.tools.get(str(call["function"]["name"])) for call in calls]
    if all(tool is None or tool.lookup for tool in named):
        record.stale = record.stale + 1 if _known(record) == before else 0
    results = [_STOPPED if isinstance(result, BaseException) else result for result in ended]
    shown = {call["id"]: result.documents for call, result in zip(calls, results, strict=True)}
    earlier = len(ids_of_turns(state)) > 1  # what they read may have been withdrawn while this turn ran
    return {
        **({"withdrawn": await forget_withdrawn(context, state.get("documents") or {})} if earlier else {}),
        "documents": {call: list(ids) for call, ids in shown.items() if ids},
        "plan": [f"{step['title']} ({step['state']})" for step in record.plan] or state.get("plan") or [],
        "messages": [
            {"role": "tool", "tool_call_id": call["id"], "content": result.text}
            for call, result in zip(calls, results, strict=True)
        ],
    }


def _known(record: TurnRecord) -> tuple[int, ...]:
    """Return what grows when a round brings something new."""
    return len(record.sources.all()), len(record.read), record.found


async def _shown(context: TurnContext, call: Wire) -> ToolResult:
    """Run one call and tell the asker; return what the message is to hold."""
    name = str(call["function"]["name"])[:100]
    arguments = _parse(call["function"].get("arguments"))
    shown = arguments if isinstance(arguments, dict) else {}
    began = monotonic()
    context.emit("tool.started", {"call_id": call["id"], "name": name, "arguments": shown})
    result = ToolResult(STOPPED, summary=context.say("tool_stopped"), ok=False)
    ref = ""
    try:
        result = await run_call(context, name, arguments)
        _note(context, name, shown, result)
        documents = documents_in(context, result)
        text = result.text
        if result.ok and (tool := context.tools.get(name)):
            text, ref = await within_limits(context, tool, result, documents)
            text, ref = await within_room(context, tool, result, documents, text, ref)
        if ref:
            earlier = context.record.full.get(call["id"], "")
            context.record.full[call["id"]] = f"{earlier}\n{result.text}"
        _keep(
            context, result, as_shown := replace(result, text=text, whole="", store=False, documents=tuple(documents))
        )
        result = as_shown
    finally:
        context.emit(
            "tool.finished",
            {
                "call_id": call["id"],
                "name": name,
                "summary": result.summary,
                "ok": result.ok,
                "elapsed_ms": round((monotonic() - began) * 1000),
                "ref": ref or None,
                "refused": result.refused or None,
            },
        )
    return result


async def run_call(context: TurnContext, name: str, arguments: dict[str, Any] | str) -> ToolResult:
    """Run one call within its limits and return what the model is told.

    ``arguments`` is the parsed object, or the reason why there is none.
    """
    record, budget = context.record, context.budget
    tool = context.tools.get(name)
    if tool is None:
        available = ", ".join(context.tools) or "none"
        said = f"Error: there is no tool {name!r} in this turn. Available: {available}."
        return replace(_refused(context, said), refused="unknown_tool")
    if isinstance(arguments, str):
        return _refused(context, f"Error: {arguments}")
    try:
        checked = tool.arguments.model_validate(arguments)
    except ValidationError as error:
        return _refused(context, f"Error: wrong arguments for {name}: {_fields(error)}")
    key = f"{name} {orjson.dumps(checked.model_dump(mode='json'), option=orjson.OPT_SORT_KEYS).decode()}"
    earlier: ToolResult | None = record.results.get(key)
    if earlier is not None and await _still_readable(context, earlier):
        record.repeats += 1
        return replace(earlier, text=f"(The same call as before; this is its result again.)\n{earlier.text}")
    if record.calls >= budget.calls:
        return _refused(context, "Error: this turn's budget of tool calls is used up. Answer from what you have read.")
    record.calls += 1
    result = await _retried(context, tool, lambda: tool.run(context, checked))
    if result.ok:
        record.results[key] = result
    return result


def _note(context: TurnContext, name: str, arguments: dict[str, Any], result: ToolResult) -> None:
    """Write down what an answer may stand on: what was looked up, found, and read whole."""
    record, tool = context.record, context.tools.get(name)
    if tool is None or not tool.lookup or not result.ran:
        return
    found = parts(result.text)
    record.found |= bool(found) or result.found
    if name == "get_document_info":
        return  # names and dates: no answer stands on these alone
    record.looked += 1
    record.readings += name == "list_chunks"
    if query := arguments.get("query") or arguments.get("pattern"):
        record.queries.append(" ".join(str(query).split())[:80])
    record.failed += not result.ok
    for n, part in found:
        (record.excerpts if part in ("excerpt", "cut") else record.read).add(n)


def _keep(context: TurnContext, result: ToolResult, shown: ToolResult) -> None:
    """Let a repeated call get what this one showed, so that nothing is put away twice."""
    results = context.record.results
    results.update({key: shown for key, one in results.items() if one is result})


def documents_in(context: TurnContext, result: ToolResult) -> list[str]:
    """Return the ids of the documents that a result shows."""
    shown = context.record.sources.pick(numbers(result.text))
    return sorted({*result.documents, *(str(source.document_id) for source in shown if source.document_id)})


async def _still_readable(context: TurnContext, earlier: ToolResult) -> bool:
    """Look whether a result may be shown again: what was withdrawn during the turn may not."""
    wanted = {UUID(one) for one in documents_in(context, earlier)}
    try:
        return not wanted or await context.readable(wanted) >= wanted
    except KnowSphereError:
        return False


async def _retried(context: TurnContext, tool: Tool, attempt: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
    for tried in range(1, TRIES + 1):
        try:
            async with asyncio.timeout(context.budget.tool_s):
                result = await attempt()
            return replace(result, text=storable(result.text)[:LONGEST], whole=storable(result.whole)[:LONGEST])
        except TimeoutError:
            text = f"Error: {tool.name} did not finish within {context.budget.tool_s:g} s."
            return ToolResult(text, context.say("tool_failed"), ok=False)
        except NotFound:
            return replace(_refused(context, "Error: not found."), ran=True)
        except (KnowSphereError, ConnectionError) as error:
            passing = not isinstance(error, KnowSphereError) or error.retryable
            if not passing or tried == TRIES:
                code = error.code if isinstance(error, KnowSphereError) else "connection_lost"
                if isinstance(error, KnowSphereError) and error.status < 500:
                    return replace(_refused(context, f"Error: {tool.name} ({code}): {error.message}"), ran=True)
                text = f"Error: {tool.name} failed ({code}). Say so if the answer depends on it."
                return ToolResult(text, context.say("tool_failed"), ok=False)
            detail = context.say("tool_retried", tool=tool.name, n=tried + 1, of=TRIES)
            context.emit("step", {"name": "retry", "status": "failed", "elapsed_ms": 0, "detail": detail})
            await asyncio.sleep(WAIT_S * 2 ** (tried - 1) * random.uniform(0.5, 1))  # noqa: S311 (jitter)
        except Exception as error:
            logger.exception("tool %s failed", tool.name)
            text = f"Error: {tool.name} failed ({type(error).__name__}). Say so if the answer depends on it."
            return ToolResult(text, context.say("tool_failed"), ok=False)
    raise AssertionError("unreachable")


def _refused(context: TurnContext, text: str) -> ToolResult:
    return ToolResult(text, context.say("tool_refused"), ok=False, ran=False)


def _parse(raw: Any) -> dict[str, Any] | str:
    """Return the arguments as an object, or why they are none."""
    if isinstance(raw, dict):
        return dict(_storable(raw))
    if not isinstance(raw, str) or not raw.strip():
        return "the arguments are empty; send a JSON object."
    if len(raw) > ARGUMENTS_LIMIT:
        return f"the arguments are longer than {ARGUMENTS_LIMIT} characters."
    try:
        parsed = arguments_in(storable(raw))
    except orjson.JSONDecodeError as error:
        return f"the arguments are not JSON: {error}"
    return dict(_storable(parsed)) if isinstance(parsed, dict) else "the arguments must be a JSON object."


def _storable(value: Any) -> Any:
    """Drop what the database refuses, which JSON can hide in escapes."""
    if isinstance(value, dict):
        return {storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return storable(value) if isinstance(value, str) else value


def _fields(error: ValidationError) -> str:
    places = (
        f"{'.'.join(map(str, part['loc'])) or 'arguments'}: {part['msg']}"
        for part in error.errors(include_url=False, include_context=False)
    )
    return "; ".join(places)[:1000]
