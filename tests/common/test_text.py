"""Text from outside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.common.text import display_name, legible, storable


@given(st.text(alphabet=st.characters()))
def test_storable_text_is_utf8_without_nul(text):
    assert b"\0" not in storable(text).encode("utf-8")


def test_lone_surrogates_go():
    assert storable("a\ud800b\x00c") == "abc"


def test_layout_and_joiners_stay_and_tricks_go():
    assert legible("a\tb\nc\u200db\u202e\u200b\x07") == "a\tb\nc\u200db"


@pytest.mark.parametrize(
    ("given_name", "shown"),
    [
        ("../../x.txt", "x.txt"),
        ("..\\x", "x"),
        ("/etc/x", "x"),
        ("a\0.pdf", "a.pdf"),
        ("报告.pdf", "报告.pdf"),
        ("\u202ecod.exe", "cod.exe"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("a\nb.txt", "a b.txt"),
    ],
)
def test_names_are_for_display(given_name, shown):
    assert display_name(given_name) == shown


def test_a_long_name_keeps_its_extension():
    name = display_name("长" * 300 + ".docx")
    assert len(name) == 255
    assert name.endswith("….docx")
