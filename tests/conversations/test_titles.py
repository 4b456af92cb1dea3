"""Titles of conversations."""

import pytest

from apps.conversations.services import title_of


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What table structure model was compared?", "What table structure model was compared?"),
        (" two\nlines  and\u202e a mark ", "two lines and a mark"),
        ("word " * 30, "word " * 11 + "word…"),
        ("长" * 80, "长" * 59 + "…"),
        ("x" * 58 + " yz", "x" * 58 + "…"),
    ],
)
def test_a_title_is_one_line_of_whole_words(question, title):
    assert title_of(question) == title
