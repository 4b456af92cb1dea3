"""Six segments whose beginning stays the same, byte for byte."""

import hashlib
from itertools import pairwise
from pathlib import Path

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.agents.context import AgentProfile, Switches
from apps.agents.context_layout import lay_out, task, turn_context
from apps.agents.prefix import request_bytes
from apps.agents.prompts import identity
from apps.agents.services import DEFAULT_TOOLS
from apps.agents.tools import catalog

GOLDEN = Path(__file__).parent / "layout.golden.json"
CALL = {"id": "k1", "type": "function", "function": {"name": "doc_retrieval", "arguments": '{"query": "leave"}'}}
EARLIER = [
    {"role": "user", "content": "How long is annual leave?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "k1", "content": '<results tool="doc_retrieval">…'},
    {"role": "assistant", "content": "Ten days [[c1]]."},
]
NOW = {"role": "user", "content": "那病假呢？"}


def view(messages, *, switches=None, **kwargs):
    return lay_out(
        messages,
        identity="You answer.",
        switches=switches or Switches(knowledge=True),
        **kwargs,
    )


def conversation(turns):
    for number in range(turns):
        yield {"role": "user", "content": f"question {number}"}
        yield {"role": "assistant", "content": f"answer {number}"}


def test_golden_bytes():
    block = turn_context(
        today="2026-11-30",
        question="那病假呢？",
        rewrite="病假有多长？",
        background=["I work in </turn_context> finance"],
    )
    laid = view([*EARLIER, NOW], turn_context=block, handoff="Done: nothing yet.")
    assert orjson.dumps(laid, option=orjson.OPT_INDENT_2) == GOLDEN.read_bytes().rstrip(b"\n")


def test_the_tools_and_the_rules_of_an_agent_are_the_same_bytes_every_time():
    tools = catalog.usable(reversed(DEFAULT_TOOLS), Switches(knowledge=True, web=True))
    assert list(tools) == sorted([*DEFAULT_TOOLS, "get_stored_data"])
    schemas = [catalog.schema(tool) for tool in tools.values()]
    first = request_bytes(schemas, [{"role": "system", "content": identity(AgentProfile("A", "Be kind."))}])
    again = request_bytes(
        [catalog.schema(tool) for tool in catalog.usable(DEFAULT_TOOLS, Switches(knowledge=True, web=True)).values()],
        [{"role": "system", "content": identity(AgentProfile("A", "Be kind."))}],
    )
    assert hashlib.sha256(first).digest() == hashlib.sha256(again).digest()
    assert b'"title":"' not in first


def test_a_tool_that_cannot_work_is_not_offered():
    assert list(catalog.usable([*DEFAULT_TOOLS, "gone"], Switches(knowledge=False))) == [
        "get_stored_data",
        "write_plan",
    ]
    assert catalog.usable(["gone"], Switches(knowledge=True)) == {}


def test_within_a_turn_the_prompt_only_grows():
    block = turn_context(today="2026-11-30", question="q", rewrite="r", background=[])
    before = request_bytes([], view([*EARLIER, NOW], turn_context=block))
    call = {**CALL, "id": "k2"}
    later = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "k2", "content": "x"},
    ]
    after = request_bytes([], view([*EARLIER, NOW, *later], turn_context=block))
    assert after.startswith(before)


def test_a_switch_changes_nothing_before_its_segment():
    on = request_bytes([], view([NOW], switches=Switches(knowledge=True)))
    off = request_bytes([], view([NOW], switches=Switches(knowledge=False, language="en")))
    assert on.split(b"# This conversation")[0] == off.split(b"# This conversation")[0]
    assert "English" in task(Switches(knowledge=False, language="en"))


def test_the_turn_context_is_not_in_the_next_turns_prompt():
    first = view([EARLIER[0]], turn_context="Today is 2026-11-30.")
    assert first[1]["content"].endswith("\n\nHow long is annual leave?")
    assert view([*EARLIER, NOW])[1]["content"] == "How long is annual leave?"


def test_what_was_handed_off_is_not_in_the_view():
    laid = view([*conversation(3), NOW], handed_off=2, handoff="Two turns.")
    assert [m["content"] for m in laid[1:]] == [
        "<handoff>\nTwo turns.\n</handoff>\n\nquestion 2",
        "answer 2",
        "那病假呢？",
    ]
    assert [m["content"] for m in view([*conversation(3), NOW], handed_off=3)[1:]] == ["那病假呢？"]


def test_history_between_two_steps_is_a_prefix():
    views = [request_bytes([], view([*conversation(n), NOW])[:-1]) for n in range(17)]
    for before, after in pairwise(views):
        assert after.startswith(before)


@st.composite
def conversations(draw):
    """Messages as turns leave them, some cut off: calls without results, two questions in a row."""
    messages, number = [], 0
    for question in draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6)):
        messages.append({"role": "user", "content": question})
        for calls in draw(st.lists(st.integers(0, 2), max_size=3)):
            ids = [f"k{number + i}" for i in range(calls)]
            number += calls
            made = [{**CALL, "id": one} for one in ids]
            messages.append(
                {"role": "assistant", "content": None, "tool_calls": made}
                if made
                else {"role": "assistant", "content": "x"}
            )
            answered = ids[: draw(st.integers(0, calls))]
            messages += [{"role": "tool", "tool_call_id": one, "content": "found"} for one in answered]
    return messages


@given(conversations(), st.text(max_size=20), st.text(max_size=20), st.integers(0, 5), st.booleans())
@settings(max_examples=150, deadline=None)
def test_whatever_happened_every_vendor_can_read_the_prompt_and_it_only_grows(messages, block, handoff, gone, web):
    """Roles are legal, pairs whole; the layout is a pure function; a later call of the turn extends it."""
    turns = sum(message["role"] == "user" for message in messages)
    known = {"turn_context": block, "handoff": handoff, "handed_off": min(gone, turns - 1)}
    laid = view(messages, switches=Switches(knowledge=True, web=web), **known)
    assert laid == view(messages, switches=Switches(knowledge=True, web=web), **known)
    assert [message["role"] for message in laid[:2]] == ["system", "user"]
    assert sum(message["role"] == "user" for message in laid) == turns - known["handed_off"]
    waiting: list[str] = []
    for before, message in pairwise(laid):
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            assert (before["role"], message["role"]) not in {
                ("user", "user"),
                ("tool", "user"),
                ("assistant", "system"),
            }
        waiting += [call["id"] for call in message.get("tool_calls") or ()]
    assert not waiting
    call = {**CALL, "id": "last"}
    more = [{"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "last", "content": "y"}]  # fmt: skip
    grown = view([*messages, *more], switches=Switches(knowledge=True, web=web), **known)
    assert grown[: len(laid)] == laid
    assert grown[len(laid) :] == more
