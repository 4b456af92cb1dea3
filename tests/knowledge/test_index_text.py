"""What a passage is indexed under, and what a question is looked up by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.knowledge.index_text import LONGEST_TERM, embedding_input, fold, postings, query_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reset the SAML policies", {"reset", "saml", "polici"}),
        ("写 C++ 和 C#", {"c++", "c#", "写"}),
        ("ERR-1042 in foo_bar", {"err-1042", "err", "1042", "foo_bar", "foo", "bar"}),
        ("５Ｇ网络", {"5g", "网络", "络"}),
        ("Café", {"cafe"}),
    ],
)
def test_codes_stay_whole_and_words_are_stemmed(text, expected):
    assert set(postings(text)) == expected


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("年假", "员工每年享有十五天带薪年假。"),
        ("檢索", "全文檢索引擎"),
        ("5G", "第五代移动通信（５Ｇ）"),
        ("c++", "Written in C++."),
        ("policy", "All policies apply."),
        ("ビル", "東京ビルディング"),
    ],
)
def test_a_question_meets_its_passage(query, passage):
    assert set(query_terms(query)) & set(postings(passage))


@pytest.mark.parametrize("query", ["a", "%", "_", "'", "", "的"])
def test_stop_words_and_marks_have_no_terms(query):
    assert query_terms(query) == {}


def test_every_character_begins_a_term():
    """So that a question of one character finds it by the range of terms that begin with it."""
    text = "昨天下了大雨"
    assert {term[0] for term in postings(text)} >= set(text) - {"了"}


def test_a_repeated_term_weighs_more_but_ever_less_so():
    once, twice, thrice = (postings("rain " * n + "sun " * (9 - n))["rain"] for n in (1, 2, 3))
    assert once < twice < thrice
    assert twice - once > thrice - twice


def test_the_name_stands_before_the_text_once():
    assert embedding_input("Leave_policy.pdf", "Leave policy > Rules", "x") == "Leave policy > Rules\nx"
    assert embedding_input("guide.md", "Search", "x") == "guide > Search\nx"
    assert embedding_input("guide.md", "", "x") == "guide\nx"


@given(st.text(max_size=200))
def test_any_text_has_terms_of_bounded_length_and_positive_weight(text):
    for term, weight in postings(text).items():
        assert 0 < len(term) <= LONGEST_TERM
        assert "\x00" not in term
        assert weight > 0


@given(st.text(max_size=50))
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)
