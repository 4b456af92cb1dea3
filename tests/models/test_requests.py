"""What goes out: each request as the model can take it, by its capabilities, its vendor and what it refused."""

import dataclasses

import pytest

from apps.models import connections, gateway, quirks
from apps.models.chat import ChatRequest, ResolvedModel
from apps.models.configuration import ALL
from apps.models.providers import VENDORS
from apps.models.requests import chat_body
from apps.models.resolution import from_row
from apps.models.services import add_model
from tests.vendor import Reply, call

TOOL = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
SYSTEM = {"role": "system", "content": "You are an assistant."}
ASKED = {"role": "user", "content": "How many days?"}
FULL = ChatRequest(
    [SYSTEM, ASKED],
    tools=[TOOL],
    tool_choice="required",
    parallel_tool_calls=False,
    response_format=SCHEMA,
    logprobs=5,
    thinking=False,
)


def able(*capabilities, **more):
    return ResolvedModel("chat", "openai_compatible", "m", "http://m/v1", capabilities=frozenset(capabilities), **more)


def body(model, request=FULL, *, stream=True):
    quirks.forget()
    return quirks.fitted(model, chat_body(model, request, stream=stream))


EVERYTHING = able(*ALL, thinking_switch="type")
WITHOUT = {
    "tools": {"tools", "tool_choice", "parallel_tool_calls"},
    "parallel_tool_calls": {"parallel_tool_calls"},
    "logprobs": {"logprobs", "top_logprobs"},
    "stream_usage": {"stream_options"},
}


@pytest.mark.parametrize("capability", WITHOUT)
def test_what_a_model_cannot_is_not_asked_of_it(capability):
    whole, less = body(EVERYTHING), body(able(*set(ALL) - {capability}, thinking_switch="type"))
    assert set(whole) - set(less) == WITHOUT[capability]
    assert all(less[name] == whole[name] for name in less)


def test_a_forced_call_becomes_a_free_one_where_it_cannot_be_forced():
    assert body(able("tools"))["tool_choice"] == "auto"
    assert body(able("tools", "forced_tool_choice"))["tool_choice"] == "required"
    never = dataclasses.replace(FULL, tool_choice="none")
    assert body(able("tools"), never)["tool_choice"] == "none"


def test_the_strictest_form_of_answer_that_there_is():
    assert body(able("json_schema", "json_mode"))["response_format"] == SCHEMA
    assert body(able("json_mode"))["response_format"] == {"type": "json_object"}
    assert "response_format" not in body(able())


@pytest.mark.parametrize(
    ("switch", "on", "off"),
    [
        ("type", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}),
        ("enable", {"enable_thinking": True}, {"enable_thinking": False}),
        ("reasoning", {"reasoning": {"enabled": True}}, {"reasoning": {"enabled": False}}),
        ("effort", {}, {"reasoning_effort": "none"}),
        (
            "template",
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        ("", {}, {}),
    ],
)
def test_thinking_is_switched_as_the_vendor_writes_it(switch, on, off):
    plain = body(able(thinking_switch=switch), ChatRequest([ASKED]))
    for wanted, written in ((True, on), (False, off)):
        request = ChatRequest([ASKED], thinking=wanted)
        assert body(able(thinking_switch=switch), request) == {**plain, **written}
        chosen = able(thinking_switch=switch, thinks=wanted)
        assert body(chosen, ChatRequest([ASKED])) == {**plain, **written}
    assert plain.keys() == {"model", "stream", "messages"}


def test_every_vendors_switch_is_one_that_can_be_written():
    for vendor in VENDORS.values():
        assert body(able(*ALL, thinking_switch=vendor.thinking))["messages"]


def test_the_end_of_the_system_prompt_is_marked_for_vendors_that_cache_up_to_a_mark():
    first, second = body(able("cache_breakpoints"))["messages"]
    assert first["content"] == [
        {"type": "text", "text": "You are an assistant.", "cache_control": {"type": "ephemeral"}}
    ]
    assert second == ASKED
    assert body(able())["messages"] == [SYSTEM, ASKED]


CALL = call("t", {"x": 1})
HISTORY = [
    ASKED,
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "let me look"},
    {"role": "tool", "tool_call_id": CALL["id"], "content": "20"},
    {"role": "assistant", "content": "Twenty.", "reasoning_content": "so it is twenty"},
    ASKED,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": CALL["id"], "content": "20"},
]


@pytest.mark.parametrize(
    ("policy", "sent"),
    [
        ("never", [None, None, None]),
        ("tool_turns", ["let me look", None, ""]),
        ("always", ["let me look", "so it is twenty", ""]),
    ],
)
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_as_the_vendor_wants_it(policy, sent, name):
    model = able(reasoning_replay=policy, reasoning_field=name)
    messages = body(model, ChatRequest(HISTORY))["messages"]
    assert [m.get(name) for m in messages if m["role"] == "assistant"] == sent
    other = {"reasoning_content", "reasoning"} - {name}
    assert not any(other & m.keys() for m in messages)
    assert [{k: v for k, v in m.items() if k not in {"reasoning", "reasoning_content"}} for m in messages] == [
        {k: v for k, v in m.items() if k != "reasoning_content"} for m in HISTORY
    ]
    assert body(model, ChatRequest(HISTORY[:4]))["messages"] == messages[:4]  # what was sent is sent again


@pytest.fixture
async def remote(vendor):
    quirks.forget()
    yield able(*ALL, "cache_breakpoints", thinking_switch="enable")
    await connections.close()


async def asked(model, vendor, request, *refusals, streamed):
    """Call twice, after refusals; return the bodies that were sent."""
    model = dataclasses.replace(model, base_url=vendor.url)
    vendor.script([*(Reply(status=400, error=words) for words in refusals), "one", "two"], to=streamed)
    for _ in range(2):
        if streamed == "stream":
            assert [delta async for delta in gateway.stream_chat(model, request)][-1].finish_reason == "stop"
        else:
            assert (await gateway.chat(model, request)).finish_reason == "stop"
    return [received.body for received in vendor.requests]


REFUSALS = {
    "reasoning missing": (
        "never",
        "Missing `reasoning_content` field in the assistant message at message index 2. It must be passed back.",
        lambda body: [m.get("reasoning_content") for m in body["messages"] if m.get("tool_calls")],
        [None, None],
        ["let me look", ""],
    ),
    "reasoning unwanted": (
        "tool_turns",
        "messages.1: unknown field `reasoning_content`",
        lambda body: [m.get("reasoning_content") for m in body["messages"] if m.get("tool_calls")],
        ["let me look", ""],
        [None, None],
    ),
    "a mark unwanted": (
        "never",
        "messages.0.content.0.cache_control: extra inputs are not permitted",
        lambda body: body["messages"][0]["content"],
        [{"type": "text", "text": "You are an assistant.", "cache_control": {"type": "ephemeral"}}],
        "You are an assistant.",
    ),
    "no schemas": (
        "never",
        "This response_format type is unavailable now",
        lambda body: body.get("response_format"),
        SCHEMA,
        {"type": "json_object"},
    ),
    "no switch": (
        "never",
        "Unrecognized request argument supplied: enable_thinking",
        lambda body: body.get("enable_thinking"),
        False,
        None,
    ),
    "forced and thinking": (
        "never",
        "The tool_choice parameter does not support being set to required or object in thinking mode",
        lambda body: body.get("tool_choice"),
        "required",
        "auto",
    ),
}


@pytest.mark.parametrize("streamed", ["stream", "chat"])
@pytest.mark.parametrize("case", REFUSALS)
async def test_what_is_refused_is_put_right_once_and_remembered(remote, vendor, case, streamed):
    policy, words, look, before, after = REFUSALS[case]
    model = dataclasses.replace(remote, reasoning_replay=policy)
    request = dataclasses.replace(FULL, messages=[SYSTEM, *HISTORY])
    bodies = await asked(model, vendor, request, words, streamed=streamed)
    assert [look(sent) for sent in bodies] == [before, after, after]


async def test_no_json_mode_either(remote, vendor):
    words = "response_format is not supported by this model"
    bodies = await asked(remote, vendor, FULL, words, words, streamed="chat")
    forms = [sent.get("response_format") for sent in bodies]
    assert forms == [SCHEMA, {"type": "json_object"}, None, None]


async def test_a_model_that_thinks_only_in_streams_is_told_not_to_in_whole_answers(remote, vendor):
    words = "parameter.enable_thinking must be set to false for non-streaming calls"
    bodies = await asked(remote, vendor, ChatRequest([ASKED]), words, streamed="chat")
    assert [sent.get("enable_thinking") for sent in bodies] == [None, False, False]
    streamed = await asked(remote, vendor, ChatRequest([ASKED]), streamed="stream")
    assert "enable_thinking" not in streamed[-1]


def test_a_vendors_habits_come_with_the_vendor(acme, ann):
    made = {
        key: from_row(add_model(workspace=acme, kind="chat", provider=key, name="m", actor=ann))
        for key in ("deepseek", "zhipu", "openrouter", "openai", "dashscope")
    }
    assert {key: model.reasoning_replay for key, model in made.items()} == {
        "deepseek": "tool_turns",
        "zhipu": "never",
        "openrouter": "tool_turns",
        "openai": "never",
        "dashscope": "never",
    }
    assert {key for key, model in made.items() if "cache_breakpoints" in model.capabilities} == {
        "openrouter",
        "dashscope",
    }
    assert "forced_tool_choice" not in made["zhipu"].capabilities
    assert (made["openai"].thinking_switch, made["deepseek"].thinking_switch) == ("", "type")
    chosen = add_model(
        workspace=acme,
        kind="chat",
        provider="deepseek",
        name="m2",
        actor=ann,
        configuration={"reasoning_replay": "never", "thinking": "off"},
    )
    assert (from_row(chosen).reasoning_replay, from_row(chosen).thinks) == ("never", False)
