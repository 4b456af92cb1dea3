"""Titles of conversations."""

import pytest

from apps.conversations.services import title_of


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Who wrote it?", "Who wrote it?"),
        ("What table structure model was compared?", "What table…"),
        (" a\nline  and\u202e more ", "a line and more"),
        ("word " * 30, "word word word…"),
        ("长" * 80, "长" * 15 + "…"),
        ("x" * 14 + " yz", "x" * 14 + "…"),
    ],
)
def test_a_title_is_one_line_of_whole_words(question, title):
    assert title_of(question) == title
