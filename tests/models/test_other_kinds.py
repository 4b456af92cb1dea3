"""gateway.rerank, describe and transcribe over HTTP."""

import base64

import pytest

from apps.models import connections, gateway, ledger, quirks
from apps.models.chat import ResolvedModel
from tests.vendor import Reply

DOCUMENTS = ["boats", "annual leave is twenty days", "cars"]
TEI_REFUSAL = "Failed to deserialize the JSON body: missing field `texts`"


@pytest.fixture(autouse=True)
async def _connections(monkeypatch):
    quirks.forget()
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    yield
    await connections.close()


@pytest.fixture
def reranker(vendor):
    return ResolvedModel("rerank", "openai_compatible", "r", vendor.url, max_input=64, max_batch=2)


def ranking(*pairs, name="relevance_score"):
    return [{"index": index, name: score} for index, score in pairs]


async def test_scores_come_in_the_order_of_the_documents(reranker, vendor):
    scores = await gateway.rerank(reranker, "annual leave", DOCUMENTS)
    assert max(range(3), key=scores.__getitem__) == 1
    assert [len(request.body["documents"]) for request in vendor.requests] == [2, 1]
    entry = ledger._pending[-1]
    assert (entry.purpose, entry.outcome, entry.usage.estimated) == ("rerank", "ok", True)


async def test_documents_are_cut_to_the_models_limit(reranker, vendor):
    await gateway.rerank(reranker, "leave", ["word " * 400, ""])
    sent = vendor.requests[0].body["documents"]
    assert 100 < len(sent[0]) < 256
    assert sent[1] == " "


@pytest.mark.parametrize(
    "body",
    [
        {"results": ranking((1, 0.9), (0, 0.1)), "meta": {"tokens": {"input_tokens": 7}}},
        {"output": {"results": ranking((1, 0.9), (0, 0.1))}, "usage": {"total_tokens": 7}},
        {"results": ranking((1, 0.9), (0, 0.1), name="score"), "tokens": {"input_tokens": 7}},
        {"data": ranking((0, 0.1), (1, 0.9)), "usage": {"total_tokens": 7}},
    ],
)
async def test_the_shapes_that_vendors_answer_in(reranker, vendor, body):
    vendor.script([Reply(body=body)], to="rerank")
    assert await gateway.rerank(reranker, "q", ["a", "b"]) == [0.1, 0.9]
    assert ledger._pending[-1].usage.prompt == 7


async def test_a_server_that_wants_texts_is_asked_its_way_from_then_on(reranker, vendor):
    answer = Reply(body=ranking((1, 0.9), (0, 0.1), name="score"))
    vendor.script([Reply(status=422, error=TEI_REFUSAL), answer, answer], to="rerank")
    for _ in range(2):
        assert await gateway.rerank(reranker, "q", ["a", "b"]) == [0.1, 0.9]
    assert ["texts" in request.body for request in vendor.requests] == [False, True, True]


@pytest.mark.parametrize(
    "results",
    [
        ranking((0, 0.5)),
        ranking((0, 0.5), (0, 0.6)),
        ranking((0, 0.5), (2, 0.6)),
        ranking((0, 0.5), (-1, 0.6)),
        ranking((0, 0.5), (True, 0.6)),
        ranking((0, 0.5), (1, None)),
        ["a", "b"],
        "nothing",
    ],
)
async def test_scores_that_do_not_match_are_refused(reranker, vendor, results):
    vendor.script([Reply(body={"results": results})], to="rerank")
    with pytest.raises(gateway.BadRanking):
        await gateway.rerank(reranker, "q", ["a", "b"])
    assert ledger._pending[-1].outcome == "failed"


async def test_nothing_to_rank_asks_nobody(reranker, vendor):
    assert await gateway.rerank(reranker, "q", []) == []
    assert not vendor.requests


async def test_a_picture_is_described(vendor):
    vendor.script([Reply(" A chart. ")], to="chat")
    model = ResolvedModel("vision", "openai_compatible", "v", vendor.url)
    assert await gateway.describe(model, b"\x89PNG", media_type="image/png", prompt="What is it?") == "A chart."
    text, image = vendor.requests[0].body["messages"][0]["content"]
    assert text["text"] == "What is it?"
    assert image["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()


async def test_a_recording_is_written_down(vendor):
    model = ResolvedModel("speech", "openai_compatible", "whisper", vendor.url)
    vendor.script(
        [Reply(body={"text": " Hello. ", "usage": {"input_tokens": 30, "output_tokens": 3}})], to="transcriptions"
    )
    assert await gateway.transcribe(model, b"RIFFdata", file_name="a.wav", language="en") == "Hello."
    sent = vendor.requests[0]
    assert sent.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    for part in (b'filename="a.wav"', b"RIFFdata", b'name="model"', b"whisper", b'name="language"'):
        assert part in sent.raw
    assert (ledger._pending[-1].usage.prompt, ledger._pending[-1].usage.completion) == (30, 3)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=401, error="bad key"), gateway.ModelRefused),
        (Reply(body={"words": []}), gateway.ModelUnavailable),
        (Reply(body=["text"]), gateway.ModelUnavailable),
    ],
)
async def test_a_recording_that_cannot_be_written_down(vendor, reply, error):
    vendor.script([reply], to="transcriptions")
    model = ResolvedModel("speech", "openai_compatible", "whisper", vendor.url)
    with pytest.raises(error):
        await gateway.transcribe(model, b"RIFF", file_name="a.wav")


def test_the_worker_asks_the_same_without_a_loop(vendor):
    vendor.script([Reply("A chart.")], to="chat")
    vendor.script([Reply("Hello.")], to="transcriptions")
    picture = ResolvedModel("vision", "openai_compatible", "v", vendor.url)
    recording = ResolvedModel("speech", "openai_compatible", "whisper", vendor.url)
    assert gateway.describe_now(picture, b"\x89PNG", media_type="image/png", prompt="What is it?") == "A chart."
    assert gateway.transcribe_now(recording, b"RIFF", file_name="a.wav") == "Hello."
