"""gateway.chat and gateway.embed over HTTP."""

import asyncio
import dataclasses
import json
from contextlib import suppress

import numpy as np
import pytest

from apps.models import connections, gateway, quirks
from apps.models.chat import ChatRequest, ResolvedModel
from apps.models.errors import retry_after
from apps.models.resolution import BUILTIN, from_environment
from apps.models.tokens import estimate_prompt
from tests.vendor import Reply, call
from tests.vendor.plugin import CANARY
from tests.vendor.server import vector

QUESTION = ChatRequest([{"role": "user", "content": "A or B?"}], logprobs=5)


@pytest.fixture
async def model(scripted_model, monkeypatch):
    quirks.forget()
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    yield from_environment("chat")
    await connections.close()


@pytest.fixture
async def embedder(model, vendor):
    return ResolvedModel(
        "embedding", "openai_compatible", "e", vendor.url, key=model.key, max_input=8_000, max_batch=64
    )


async def embed(model, texts, **options):
    return await gateway.embed(model, texts, purpose="passage", **options)


def unit(text):
    row = np.array(vector(text), dtype=np.float32)
    return row / np.linalg.norm(row)


async def test_a_whole_answer_with_its_first_alternatives(model, vendor):
    vendor.script([Reply("A", reasoning="hm", logprobs={"A": -0.1, "B": -2.5})], to="chat")
    reply = await gateway.chat(model, QUESTION)
    assert (reply.text, reply.finish_reason, reply.usage.prompt) == ("A", "stop", 10)
    assert reply.top_logprobs == {"A": -0.1, "B": -2.5}
    assert vendor.requests[0].body["top_logprobs"] == 5
    assert vendor.requests[0].headers["Authorization"] == f"Bearer {CANARY}"


async def test_a_whole_answer_with_tool_calls(model, vendor):
    vendor.script([Reply(tool_calls=[call("search", {"q": "x"})])], to="chat")
    reply = await gateway.chat(model, QUESTION)
    assert (reply.finish_reason, reply.tool_calls[0]["function"]["name"]) == ("tool_calls", "search")


async def test_thinking_is_no_part_of_a_whole_answer(model, vendor):
    vendor.script([Reply("<think>long</think>\nB")], to="chat")
    assert (await gateway.chat(model, QUESTION)).text == "B"


async def test_refused_logprobs_are_left_out_from_then_on(model, vendor):
    vendor.script([Reply(status=400, error="logprobs are not supported with this model"), "A", "B"], to="chat")
    assert (await gateway.chat(model, QUESTION)).top_logprobs == {}
    assert (await gateway.chat(model, QUESTION)).text == "B"
    assert ["logprobs" in request.body for request in vendor.requests] == [True, False, False]


TOOL = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
REFUSED = {
    "max_tokens": (
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "max_completion_tokens",
        9,
    ),
    "tool_choice": ("tool_choice 'required' is incompatible with thinking enabled", "tool_choice", "auto"),
    "temperature": ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature", None),
    "response_format": ("response_format type json_schema is unavailable now", "response_format", None),
}


@pytest.mark.parametrize("parameter", REFUSED)
async def test_a_parameter_that_a_vendor_refuses_is_replaced_once_and_remembered(model, vendor, parameter):
    words, instead, value = REFUSED[parameter]
    vendor.script([Reply(status=400, error=words), "one", "two"], to="chat")
    request = ChatRequest(
        QUESTION.messages,
        tools=[TOOL],
        tool_choice="required",
        temperature=0.0,
        max_tokens=9,
        response_format={"type": "json_object"},
    )
    assert (await gateway.chat(model, request)).text == "one"
    assert (await gateway.chat(model, request)).text == "two"
    assert [sent.body.get(instead) for sent in vendor.requests[1:]] == [value, value]
    unchanged = {"tools", "tool_choice", "temperature", "max_tokens", "response_format"} - {parameter}
    assert all(sent.body[name] == vendor.requests[0].body[name] for sent in vendor.requests for name in unchanged)


async def test_a_refusal_for_another_reason_is_not_repeated(model, vendor):
    vendor.script([Reply(status=400, error="context length exceeded")], to="chat")
    with pytest.raises(gateway.ModelRefused, match="context length exceeded"):
        await gateway.chat(model, QUESTION)
    assert len(vendor.requests) == 1


@pytest.mark.parametrize(
    ("reply", "error", "tries"),
    [
        (Reply(status=401, error=f"bad key {CANARY}"), gateway.ModelRefused, 1),
        (Reply(status=401, error={"message": "Incorrect API key: sk-cana****show-this"}), gateway.ModelRefused, 1),
        (Reply(status=429, headers={"Retry-After": "0"}), gateway.ModelOverloaded, 3),
        (Reply(status=500, error=f"Authorization: Bearer {CANARY}"), gateway.ModelUnavailable, 3),
        (Reply(body={"error": {"message": "overloaded", "code": 503}}), gateway.ModelUnavailable, 1),
        (Reply(body={"choices": []}), gateway.ModelUnavailable, 1),
        (Reply(body=[]), gateway.ModelUnavailable, 1),
    ],
)
async def test_failures_carry_the_vendors_words_and_no_key(model, vendor, caplog, reply, error, tries):
    vendor.script([reply] * 3, to="chat")
    with caplog.at_level("DEBUG"), pytest.raises(error) as caught:
        await gateway.chat(model, QUESTION)
    assert len(vendor.requests) == tries
    shown = f"{caught.value!r} {caught.value} {json.dumps(caught.value.as_dict())} {caplog.text}"
    assert CANARY not in shown
    assert "sk-cana" not in shown


async def test_an_endpoint_that_is_none(model, vendor):
    with pytest.raises(gateway.ModelUnavailable, match="JSON"):
        await gateway.chat(dataclasses.replace(model, base_url=vendor.url.replace("/v1", "/page")), QUESTION)
    with pytest.raises(gateway.ModelRefused, match="no such path"):
        await gateway.chat(dataclasses.replace(model, base_url=f"{vendor.url}/v2"), QUESTION)
    with pytest.raises(gateway.ModelUnavailable):
        await gateway.chat(dataclasses.replace(model, base_url="http://127.0.0.1:9/v1"), QUESTION)


async def test_a_whole_answer_that_never_comes(model, vendor, monkeypatch):
    monkeypatch.setattr("apps.models.retries.ATTEMPTS", 1)
    monkeypatch.setattr(connections, "WHOLE_CALL_S", 0.2)
    vendor.script([Reply(delay=30)], to="chat")
    with pytest.raises(gateway.ModelTimeout):
        await gateway.chat(model, QUESTION)


WORDS = {
    '{"error": {"message": "too many"}}': "too many",
    '{"error": "too many"}': "too many",
    '{"message": "too many", "code": 1}': "too many",
    '{"detail": "too many"}': "too many",
    '{"error": {"code": "too_many"}}': "too_many",
    "too many\nTraceback (most recent call last)": "too many",
    "<html><body>too many</body></html>": "HTTP 400",
    "": "HTTP 400",
}


@pytest.mark.parametrize("body", WORDS)
@pytest.mark.parametrize("streamed", [True, False])
async def test_the_first_line_of_a_refusal_in_any_shape(model, vendor, body, streamed):
    vendor.script([Reply(status=400, body=body)], to="stream" if streamed else "chat")
    with pytest.raises(gateway.ModelRefused) as caught:
        await (anext(gateway.stream_chat(model, QUESTION)) if streamed else gateway.chat(model, QUESTION))
    assert caught.value.details["reason"] == WORDS[body]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_when_to_try_again(headers, seconds):
    assert retry_after(headers) == seconds


BUILTIN_QUESTION = ChatRequest([{"role": "user", "content": "Hello!"}])


async def test_the_built_in_answerer_is_called_the_same_way(settings):
    model = BUILTIN["chat"]
    deltas = [delta async for delta in gateway.stream_chat(model, BUILTIN_QUESTION)]
    assert deltas[-1].finish_reason == "stop"
    text = "".join(delta.text for delta in deltas)
    assert text
    assert (await gateway.chat(model, BUILTIN_QUESTION)).text == text


async def test_the_built_in_embedder_is_called_the_same_way():
    model = BUILTIN["embedding"]
    vectors = await gateway.embed(model, ["one", "two"], purpose="passage")
    assert np.allclose(vectors, gateway.embed_now(model, ["one", "two"], purpose="passage"), atol=1e-5)


def test_a_prompt_costs_what_is_in_it():
    plain = [{"role": "user", "content": "How many days?"}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "How many days?"}]}]
    called = [*plain, {"role": "assistant", "content": None, "tool_calls": [call("search", {"q": "days"})]}]
    assert 0 < estimate_prompt(plain, []) < estimate_prompt(called, []) < estimate_prompt(called, [TOOL])
    assert estimate_prompt(parts, []) >= estimate_prompt(plain, [])


async def test_a_key_shows_nowhere_on_a_model(model):
    assert CANARY not in f"{model} {model!r} {dataclasses.asdict(model)}"


@pytest.mark.parametrize("limit", [10, 20, 32, 64])
@pytest.mark.parametrize("status", [400, 413, 422])
async def test_batches_shrink_until_the_vendor_takes_them(embedder, vendor, limit, status):
    vendor.otherwise = lambda request: (
        Reply() if len(request.body["input"]) <= limit else Reply(status=status, error="batch size is invalid")
    )
    texts = [f"text {number}" for number in range(130)]
    vectors = await embed(embedder, texts)
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)


async def test_the_batch_setting_is_applied(embedder, vendor):
    await embed(dataclasses.replace(embedder, max_batch=10), [f"{number}" for number in range(25)])
    assert [len(request.body["input"]) for request in vendor.requests] == [10, 10, 5]


async def test_batches_are_also_cut_by_tokens(embedder, vendor):
    await embed(embedder, ["word " * 3_000] * 4)
    assert [len(request.body["input"]) for request in vendor.requests] == [2, 2]


async def test_vectors_are_put_in_order_by_their_index(embedder, vendor):
    shuffled = [{"index": i, "embedding": vector(text)} for i, text in ((1, "b"), (0, "a"))]
    vendor.script([Reply(body={"data": shuffled})], to="embeddings")
    assert np.allclose(await embed(embedder, ["a", "b"]), [unit("a"), unit("b")], atol=1e-6)


GOOD = vector("good")
BAD = {
    "null": [None] * 16,
    "NaN": [float("nan")] * 16,
    "zeros": [0.0] * 16,
    "empty": [],
    "words": ["x"] * 16,
    "nothing": None,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_one_bad_vector_costs_one_text(embedder, vendor, bad):
    vendor.otherwise = lambda request: Reply(vectors=[bad if t == "bad" else GOOD for t in request.body["input"]])
    vectors = await embed(embedder, ["a", "b", "bad", "c"], partial=True)
    assert np.isnan(vectors).any(axis=1).tolist() == [False, False, True, False]
    with pytest.raises(gateway.BadVectors):
        await embed(embedder, ["a", "bad"])


async def test_a_text_that_breaks_the_vendor_costs_one_text(embedder, vendor):
    vendor.otherwise = lambda request: (
        Reply(status=500, error="json: unsupported value: NaN") if "bad" in request.body["input"] else Reply()
    )
    vectors = await embed(embedder, ["a", "bad", "c"], partial=True)
    assert np.isnan(vectors).any(axis=1).tolist() == [False, True, False]


async def test_a_vendor_that_is_down_is_an_error_not_empty_rows(embedder, vendor):
    vendor.otherwise = lambda request: Reply(status=500, error="no")
    with pytest.raises(gateway.ModelUnavailable):
        await embed(embedder, ["a", "b"], partial=True)


async def test_fewer_vectors_than_texts(embedder, vendor):
    vendor.otherwise = lambda request: Reply(vectors=[GOOD] * max(1, len(request.body["input"]) - 1))
    assert (await embed(embedder, ["a", "b", "c"])).shape == (3, 16)  # one by one there is one each


async def test_a_dimension_other_than_configured(embedder, vendor):
    with pytest.raises(gateway.BadVectors, match="16 numbers instead of 32"):
        await embed(dataclasses.replace(embedder, dimensions=32), ["a"])


async def test_a_text_that_is_too_long_is_cut_until_it_fits(embedder, vendor, caplog):
    vendor.otherwise = lambda request: (
        Reply() if all(len(text) < 2_500 for text in request.body["input"]) else Reply(status=413, error="too long")
    )
    vectors = await embed(embedder, ["short", "word " * 2_000])
    assert np.isfinite(vectors).all()
    assert "embedding half" in caplog.text


async def test_nothing_to_embed_asks_nobody(embedder, vendor):
    assert len(await embed(embedder, [])) == 0
    assert not vendor.requests


def test_embed_now_is_the_same_without_a_loop(scripted_model, vendor):
    model = ResolvedModel("embedding", "openai_compatible", "e", vendor.url)
    vectors = gateway.embed_now(model, ["a", ""], purpose="query")
    assert np.allclose(vectors[0], unit("a"), atol=1e-6)
    assert vendor.requests[0].body["encoding_format"] == "float"


async def test_an_answer_that_drips_for_ever_is_given_up(model, monkeypatch):
    monkeypatch.setattr("apps.models.retries.ATTEMPTS", 1)
    monkeypatch.setattr(connections, "WHOLE_CALL_S", 0.3)

    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)

    server = await asyncio.start_server(drip, "127.0.0.1")
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    for work in (
        gateway.chat(dataclasses.replace(model, base_url=address), QUESTION),
        gateway.transcribe(dataclasses.replace(model, base_url=address), b"x", file_name="a.wav"),
    ):
        with pytest.raises(gateway.ModelTimeout):
            await work
    server.close()
