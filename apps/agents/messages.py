"""Wire messages as lists: turns, pairs of call and result, and the check before every send."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from apps.models.chat import Wire
from apps.models.tokens import PER_MESSAGE, estimate

NAME = re.compile(r"[^A-Za-z0-9_-]")  # what no vendor takes in a tool's name
INTERRUPTED_TOOL = "[interrupted before this tool returned]"
INTERRUPTED_ANSWER = "[no answer: this turn was interrupted]"
WITHDRAWN = (
    "[not available any more: what was found and answered here came from a document that is deleted or no longer "
    "shared with the asker]"
)


def split_turns(messages: Sequence[Wire]) -> list[list[Wire]]:
    """Cut a conversation at its user messages; what stands before the first belongs to no turn."""
    turns: list[list[Wire]] = []
    for message in messages:
        if message["role"] == "user":
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def readable(turn: Sequence[Wire], withdrawn: Collection[str], turn_id: str = "") -> list[Wire]:
    """Return a finished turn as it may be shown to a model now.

    ``withdrawn`` are calls, and turns whose calls are lost, that showed a document which the asker may not read any
    more. Of such a turn the question alone stays: later calls, plans and the answer may tell what the document said.
    """
    calls = {message["tool_call_id"] for message in turn if message["role"] == "tool"}
    if calls.isdisjoint(withdrawn) and turn_id not in withdrawn:
        return list(turn)
    return [turn[0], {"role": "assistant", "content": WITHDRAWN}]


def read_in(
    turns: Sequence[Sequence[Wire]],
    ids: Sequence[str],
    documents: Mapping[str, Sequence[str]],
    withdrawn: Collection[str],
) -> set[str]:
    """Return the ids of the documents that are told of in turns as ``readable`` shows them.

    ``documents``: what each call showed, or a turn whose calls are lost.
    """
    calls = [
        {turn_id, *(message["tool_call_id"] for message in turn if message["role"] == "tool")}
        for turn, turn_id in zip(turns, ids, strict=True)
    ]
    return {one for some in calls if some.isdisjoint(withdrawn) for call in some for one in documents.get(call, ())}


def repair(messages: Sequence[Wire]) -> list[Wire]:
    """Return the messages as every vendor accepts them.

    A call without its result gets one that says so, in the order of the calls and right behind
    them; results without a call and second results are dropped; two questions in a row get an
    "interrupted" answer between them; arguments that are no JSON object are shown as an empty one, and names
    without what vendors refuse in them; system messages other than the first message, and whatever
    stands before the first question, are dropped. A pure function of the list, so bytes that were
    sent once are sent again.
    """
    repaired: list[Wire] = []
    pending: dict[str, None] = {}

    def close_calls() -> None:
        repaired.extend({"role": "tool", "tool_call_id": call, "content": INTERRUPTED_TOOL} for call in pending)
        pending.clear()

    asked = False
    for position, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in pending:
                continue
            del pending[message["tool_call_id"]]
            repaired.append(message)
            continue
        close_calls()
        if role == "system" and position > 0:
            continue
        if role == "assistant" and not asked:
            continue
        if role == "user":
            if repaired and repaired[-1]["role"] in {"user", "tool"}:
                repaired.append({"role": "assistant", "content": INTERRUPTED_ANSWER})
            asked = True
        repaired.append(_parseable(message))
        pending.update((call["id"], None) for call in message.get("tool_calls") or ())
    close_calls()
    return repaired


def _parseable(message: Wire) -> Wire:
    """Return a message whose calls every vendor can read: a model may have written them wrong."""
    calls = message.get("tool_calls") or ()
    shown = [{**call, "function": {**call["function"], **_read(call["function"])}} for call in calls]
    return message if shown == list(calls) else {**message, "tool_calls": shown}


def _read(function: Wire) -> Wire:
    name, raw = str(function["name"]), function.get("arguments")
    value: Any = raw
    try:
        value = arguments_in(raw) if isinstance(raw, str) else raw
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raw = "{}"
    elif not isinstance(raw, str) or raw.lstrip()[:1] != "{":
        raw = orjson.dumps(value).decode()
    return {"name": NAME.sub("_", name)[:64] or "unnamed", "arguments": raw}


def arguments_in(raw: str) -> Any:
    """Return the JSON value of a call's arguments; some vendors write the object's text as a JSON text once more.

    Raises:
        orjson.JSONDecodeError: it is none.
    """
    value = orjson.loads(raw)
    return orjson.loads(value) if isinstance(value, str) and value.lstrip()[:1] == "{" else value


def question_and_answer(turn: Sequence[Wire]) -> tuple[str, str]:
    """Return a turn's question and its last text; empty where there is none."""
    answers = [m["content"] for m in turn if m["role"] == "assistant" and m.get("content")]
    return str(turn[0]["content"]), str(answers[-1]) if answers else ""


def estimated_tokens(message: Wire) -> int:
    """Return about how many tokens a message has, rather too many than too few."""
    calls = message.get("tool_calls") or ()
    return (
        PER_MESSAGE + estimate(message.get("content") or "") + sum(estimate(c["function"]["arguments"]) for c in calls)
    )
