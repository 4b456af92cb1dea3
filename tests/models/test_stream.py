"""gateway.stream_chat against what vendors really send, over HTTP."""

import asyncio
import dataclasses
import threading
from contextlib import aclosing

import pytest

from apps.models import connections, gateway, quirks
from apps.models.chat import ChatRequest
from apps.models.resolution import from_environment
from tests.vendor import Reply, call
from tests.vendor.plugin import CANARY
from tests.vendor.replies import chunk

QUESTION = ChatRequest([{"role": "user", "content": "How many days?"}])


@pytest.fixture
async def model(scripted_model):
    quirks.forget()
    yield from_environment("chat")
    await connections.close()


async def ask(model, request=QUESTION, stop=None, into=None):
    got = [] if into is None else into
    async for delta in gateway.stream_chat(model, request, stop=stop):
        got.append(delta)
    return got


def text_of(deltas):
    return "".join(delta.text for delta in deltas)


async def test_tokens_come_as_they_were_sent_and_the_last_delta_ends_it(model, vendor):
    vendor.script([Reply("Twenty days. 二十天。", usage={"prompt_tokens": 12, "completion_tokens": 7})])
    deltas = await ask(model)
    assert text_of(deltas) == "Twenty days. 二十天。"
    assert len(deltas) > 4
    assert deltas[-1].finish_reason == "stop"
    assert (deltas[-1].usage.prompt, deltas[-1].usage.completion, deltas[-1].usage.estimated) == (12, 7, False)


async def test_messages_and_tools_go_out_byte_for_byte_and_last(model, vendor):
    tool = {"type": "function", "function": {"name": "search", "parameters": {"z": 1, "a": 2}}}
    await ask(model, ChatRequest([{"role": "user", "content": "é 中 \ud800"}], tools=[tool], max_tokens=9))
    sent = vendor.requests[0]
    assert sent.raw.endswith(
        b'"tools":[{"type":"function","function":{"name":"search","parameters":{"z":1,"a":2}}}],'
        + '"messages":[{"role":"user","content":"é 中 "}]}'.encode()
    )
    assert sent.headers["Authorization"] == f"Bearer {CANARY}"
    assert sent.body["stream_options"] == {"include_usage": True}


async def test_a_missing_opener_is_learnt_from_the_first_answer(model, vendor):
    pieces = ["hm", "\n", "</think>", "\n\n", "yes"]
    vendor.script([Reply(pieces=pieces), Reply(pieces=pieces), Reply(pieces=["plain"]), Reply(pieces=["plain"])])
    assert "</think>" not in text_of(await ask(model))
    assert text_of(await ask(model)) == "yes"
    assert text_of(await ask(model)) == "plain"  # it stopped thinking that way: nothing is lost
    third = await ask(model)
    assert (text_of(third), "".join(delta.reasoning for delta in third)) == ("plain", "")


BROKEN = {
    "an error in the stream": Reply("a b c d e f", error_after=3, error="worker crashed"),
    "a cut connection": Reply("a b c d e f", cut_after=3),
    "a clean end without finish reason": Reply("a b c", finish="", usage=None, done=False),
    "only the word done": Reply("a b c", finish="", usage=None),
    "finish reason error": Reply("a b c", finish="error"),
    "a bare error line": Reply(
        raw=[b'data: {"choices":[{"delta":{"content":"a b c"}}]}\n\n', b'{"error":{"message":"worker crashed"}}\n']
    ),
    "rate limit in the middle": Reply("a b c d e f", error_after=3, error={"message": "slow down", "code": 429}),
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_keeps_what_came_and_says_so(model, vendor, reply):
    vendor.script([reply])
    got = []
    with pytest.raises(gateway.StreamBroken) as caught:
        await ask(model, into=got)
    assert text_of(got) == "a b c"
    assert caught.value.message
    assert len(vendor.requests) == 1  # never repeated once something was given out


async def test_a_broken_answer_delivers_no_tool_call(model, vendor):
    vendor.script([Reply(tool_calls=[call("a", {"x": 1})], finish="", usage=None) for _ in range(3)])
    with pytest.raises(gateway.StreamBroken):
        await ask(model)


FAILURES = {
    "401": (Reply(status=401, error=f"Incorrect API key provided: {CANARY}"), gateway.ModelRefused, 1),
    "403": (Reply(status=403), gateway.ModelRefused, 1),
    "400": (Reply(status=400, error="context too long"), gateway.ModelRefused, 1),
    "429": (Reply(status=429, headers={"Retry-After": "0"}), gateway.ModelOverloaded, 3),
    "429 with a long wait": (Reply(status=429, headers={"Retry-After": "600"}), gateway.ModelOverloaded, 1),
    "500": (Reply(status=500), gateway.ModelUnavailable, 3),
    "503 in HTML": (Reply(status=503, error={"html": "<html>"}), gateway.ModelUnavailable, 3),
    "an error first thing in a 200": (Reply("a", error_after=-1, error="no"), gateway.ModelUnavailable, 3),
    "rate limit first thing in a 200": (
        Reply("a", error_after=-1, error={"message": "slow", "code": "429"}),
        gateway.ModelOverloaded,
        3,
    ),
    "a redirect": (Reply(status=302, headers={"Location": "http://127.0.0.1:1/"}), gateway.ModelRefused, 1),
    "a content filter": (Reply("", finish="content_filter"), gateway.ModelRefused, 1),
}


@pytest.mark.parametrize(("reply", "error", "tries"), FAILURES.values(), ids=FAILURES)
async def test_failures_before_the_first_token(model, vendor, monkeypatch, caplog, reply, error, tries):
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    vendor.script([reply] * 3)
    with caplog.at_level("DEBUG"), pytest.raises(error) as caught:
        await ask(model)
    assert type(caught.value) is error
    assert len(vendor.requests) == tries
    shown = f"{caught.value!r} {caught.value} {caught.value.as_dict()} {caplog.text}"
    assert CANARY not in shown


async def test_a_second_try_may_succeed(model, vendor, monkeypatch):
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    vendor.script([Reply(status=500), Reply("at last")])
    assert text_of(await ask(model)) == "at last"


async def test_retry_after_is_waited_for(model, vendor, monkeypatch):
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    vendor.script([Reply(status=429, headers={"Retry-After": "0.3"}), "ok"])
    await ask(model)
    first, second = vendor.requests
    assert second.at - first.at >= 0.3


async def test_a_refused_optional_parameter_is_left_out_from_then_on(model, vendor):
    vendor.script([Reply(status=400, error="Unrecognized request argument supplied: stream_options"), "one", "two"])
    assert text_of(await ask(model)) == "one"
    assert text_of(await ask(model)) == "two"
    assert ["stream_options" in request.body for request in vendor.requests] == [True, False, False]


async def test_a_page_instead_of_a_model(model, vendor, monkeypatch):
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    vendor.script([Reply(raw=[b"<html>"], headers={"Content-Type": "text/html"})] * 3)
    with pytest.raises(gateway.ModelUnavailable, match="model_unavailable"):
        await ask(model)


async def test_a_whole_answer_although_a_stream_was_asked(model, vendor):
    whole = Reply("all at once", tool_calls=[call("a", {"x": 1})]).whole()
    vendor.script([Reply(body=whole)])
    deltas = await ask(model)
    assert text_of(deltas) == "all at once"
    assert deltas[-1].tool_calls[0]["function"]["name"] == "a"


async def test_nobody_listens(model, monkeypatch):
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    with pytest.raises(gateway.ModelUnavailable):
        await ask(dataclasses.replace(model, base_url="http://127.0.0.1:9/v1"))


async def test_a_vendor_may_think_after_its_head(model, vendor, monkeypatch):
    monkeypatch.setattr(connections, "BETWEEN_BYTES_S", 0.1)
    think = threading.Event()
    vendor.script([Reply(chunks=[chunk({"content": "yes"}, "stop")], hold=think)])
    asyncio.get_running_loop().call_later(0.4, think.set)
    assert text_of(await ask(model)) == "yes"


@pytest.mark.parametrize(
    ("limit", "reply"),
    [
        ("FIRST_BYTE_S", Reply("a", delay=2)),
        ("FIRST_BYTE_S", Reply("a", stall_after=-1)),
        ("BETWEEN_BYTES_S", Reply("a", stall_after=0)),
    ],
)
async def test_silence_ends_in_a_time_out(model, vendor, monkeypatch, limit, reply):
    monkeypatch.setattr("apps.models.retries.ATTEMPTS", 1)
    monkeypatch.setattr(connections, limit, 0.1)
    vendor.script([reply])
    with pytest.raises(gateway.ModelTimeout):
        await ask(model)
    assert await asyncio.to_thread(vendor.wait_closed)


async def test_stop_closes_the_upstream_at_once(model, vendor):
    vendor.script([Reply("a b c d", stall_after=2)])
    stop, got = asyncio.Event(), []

    task = asyncio.create_task(ask(model, stop=stop, into=got))
    while len(got) < 2:
        await asyncio.sleep(0.005)
    stop.set()
    await asyncio.wait_for(task, 1)
    assert await asyncio.to_thread(vendor.wait_closed)
    assert text_of(got) == "a b"
    assert not any(delta.finish_reason for delta in got)


async def test_stop_also_while_waiting_for_the_first_byte(model, vendor):
    vendor.script([Reply("a", delay=30)])
    stop = asyncio.Event()
    task = asyncio.create_task(ask(model, stop=stop))
    await asyncio.to_thread(vendor.wait, lambda vendor: vendor.requests)
    stop.set()
    assert await asyncio.wait_for(task, 1) == []
    assert await asyncio.to_thread(vendor.wait_closed)


async def test_cancelling_closes_the_upstream(model, vendor):
    gate = threading.Event()
    vendor.script([Reply("a b c d", hold=gate, hold_after=2)])
    task = asyncio.create_task(ask(model))
    await asyncio.to_thread(vendor.wait, lambda vendor: vendor.requests)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(vendor.wait_closed)


async def test_leaving_early_closes_the_upstream(model, vendor):
    vendor.script([Reply("a b c d", stall_after=2)])
    async with aclosing(gateway.stream_chat(model, QUESTION)) as deltas:
        async for _delta in deltas:
            break
    assert await asyncio.to_thread(vendor.wait_closed)
