"""Every quirk of the table, over HTTP streamed and whole; and its bytes in any split, with the same result."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.models import connections, gateway, quirks
from apps.models.chat import ChatRequest
from apps.models.resolution import from_environment
from apps.models.wire.deltas import Broken, DeltaReader, Refused
from apps.models.wire.events import EventParser
from tests.models.quirks import QUIRKS, Quirk
from tests.vendor import Reply

QUESTION = ChatRequest([{"role": "user", "content": "How many days?"}])
ENDS = (b"\n", b"\r\n", b"\r")
NOISE = (b"", b": keep-alive", b"event: message", b"id: 7", b"retry: 100")


@pytest.fixture
async def model(scripted_model, monkeypatch):
    quirks.forget()
    monkeypatch.setattr("apps.models.retries.ATTEMPTS", 1)
    yield from_environment("chat")
    await connections.close()


def named(calls):
    return tuple((one["function"]["name"], one["function"]["arguments"]) for one in calls or ())


def check_end(quirk, reason, calls, usage):
    assert reason == quirk.reason
    assert named(calls) == quirk.calls
    assert len({one["id"] for one in calls or ()} - {""}) == len(quirk.calls)
    if usage is not None and quirk.usage is not None:
        assert (usage.prompt, usage.completion, usage.cached, usage.estimated) == (*quirk.usage, False)


@pytest.mark.parametrize("quirk", QUIRKS, ids=str)
async def test_streamed(model, vendor, quirk: Quirk):
    vendor.script([Reply(chunks=quirk.chunks)])
    got, failure = [], None
    try:
        async for delta in gateway.stream_chat(model, QUESTION):
            got.append(delta)
    except gateway.ModelError as error:
        failure = error
    assert "".join(delta.text for delta in got) == quirk.text
    assert "".join(delta.reasoning for delta in got) == quirk.reasoning
    assert all(delta.tool_calls is None for delta in got[:-1])
    if quirk.broken or quirk.refused:
        assert isinstance(failure, gateway.ModelRefused if quirk.refused else gateway.StreamBroken)
        assert not got or got[-1].tool_calls is None
        return
    assert failure is None
    check_end(quirk, got[-1].finish_reason, got[-1].tool_calls, got[-1].usage)
    assert got[-1].usage.estimated == (quirk.usage is None)


@pytest.mark.parametrize("quirk", [quirk for quirk in QUIRKS if quirk.message is not None], ids=str)
async def test_whole(model, vendor, quirk: Quirk):
    choice = {"index": 0, "message": quirk.message, "finish_reason": quirk.finish}
    vendor.script([Reply(body={"object": "chat.completion", "choices": [choice], **quirk.whole})], to="chat")
    if quirk.broken or quirk.refused:
        with pytest.raises(gateway.ModelRefused if quirk.refused else gateway.ModelUnavailable):
            await gateway.chat(model, QUESTION)
        return
    reply = await gateway.chat(model, QUESTION)
    assert reply.text == quirk.text
    check_end(quirk, reply.finish_reason, reply.tool_calls, reply.usage)
    assert reply.usage.estimated == (quirk.usage is None)


ERRORS_IN_A_WHOLE = [
    {"error": {"message": "crashed", "code": 500}},
    {"error": "crashed"},
    {"object": "error", "message": "crashed", "code": 1},
    {"choices": []},
    {"choices": None},
    {},
    [],
    "text",
]


@pytest.mark.parametrize("body", ERRORS_IN_A_WHOLE, ids=json.dumps)
async def test_an_error_inside_a_200_is_never_an_empty_answer(model, vendor, body):
    vendor.script([Reply(body=body)], to="chat")
    with pytest.raises(gateway.ModelError):
        await gateway.chat(model, QUESTION)


# bytes


def encoded(values, ends, noise, done, bom, ascii_only):
    """Write a stream's bytes as some vendor would: line ends, comments, other fields, escaped or not."""
    out = [b"\xef\xbb\xbf"] if bom else []
    for place, value in enumerate([*values, *(["[DONE]"] if done else [])]):
        end = ends[place % len(ends)]
        text = value if value == "[DONE]" else json.dumps(value, ensure_ascii=ascii_only)
        lines = [noise[place % len(noise)], b"data: " + text.encode()]
        out += [line + end for line in lines if line]
        out.append(end)
    return b"".join(out)


def read(parts):
    """Read bytes as the stream does; return text, reasoning, calls, reason, usage and what went wrong."""
    parser, reader = EventParser(), DeltaReader()
    text, reasoning, calls, reason, failure = [], [], None, "", ""

    def take(events):
        for event in events:
            if event == b"[DONE]":
                return True
            delta = reader.read(json.loads(event))
            if delta is not None:
                text.append(delta.text)
                reasoning.append(delta.reasoning)
        return False

    try:
        if not any(take(parser.feed(part)) for part in parts):
            take(parser.finish())
        rest, calls, reason = reader.end()
        if rest is not None:
            text.append(rest.text)
            reasoning.append(rest.reasoning)
    except Broken:
        failure = "broken"
    except Refused:
        failure = "refused"
    return "".join(text), "".join(reasoning), calls, reason, reader.usage, failure


def split(whole, cuts):
    places = sorted({cut for cut in cuts if cut < len(whole)})
    return [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]


def check(quirk, result):
    text, reasoning, calls, reason, usage, failure = result
    assert failure == ("broken" if quirk.broken else "refused" if quirk.refused else "")
    assert (text, reasoning) == (quirk.text, quirk.reasoning)
    if not failure:
        check_end(quirk, reason, calls, usage)
        assert (usage is None) == (quirk.usage is None)


@pytest.mark.parametrize("quirk", QUIRKS, ids=str)
def test_byte_by_byte(quirk):
    whole = encoded(quirk.chunks, ENDS, NOISE, True, True, False)
    check(quirk, read(bytes([byte]) for byte in whole))


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(QUIRKS),
    st.lists(st.sampled_from(ENDS), min_size=1, max_size=3),
    st.lists(st.sampled_from(NOISE), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 4_000), max_size=12),
)
def test_any_split_of_the_bytes_gives_the_same(quirk, ends, noise, done, bom, ascii_only, cuts):
    check(quirk, read(split(encoded(quirk.chunks, ends, noise, done, bom, ascii_only), cuts)))


def test_the_table_has_every_kind():
    text = " ".join(quirk.name for quirk in QUIRKS)
    for kind in ("choices", "usage", "index", "id", "object", "tags", "closed", "length", "error", "filter"):
        assert re.search(kind, text)
