"""The part of a passage that a query is about."""

import pytest

from apps.agents.tools.excerpts import excerpt

LONG = (
    " ".join(f"Sentence {n} says nothing of interest." for n in range(40)) + " The dog is called Bruno. " + "End. " * 60
)
CHINESE = "这一句没有什么特别的内容。" * 40 + "办公室的狗叫布鲁诺。" + "结束了。" * 60


@pytest.mark.parametrize(
    ("text", "query", "found"), [(LONG, "What is the dog called?", "Bruno"), (CHINESE, "狗叫什么？", "布鲁诺")]
)
def test_it_shows_what_was_asked_for_in_whole_sentences(text, query, found):
    shown = excerpt(text, query, limit=200)
    assert found in shown
    assert len(shown) <= 202
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert shown.strip("…") in text


def test_a_short_text_is_whole():
    assert excerpt("Short.", "x", limit=200) == "Short."


def test_one_long_sentence_is_cut():
    assert len(excerpt("word " * 500, "x", limit=200)) <= 202


def test_the_focus_counts_where_no_word_is_shared():
    assert "Bruno" in excerpt(LONG, "狗的名字", limit=200, focus=LONG.index("Bruno"))
