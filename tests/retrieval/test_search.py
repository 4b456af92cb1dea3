"""retrieval.search: what is found, in which order, and what happens when a part fails."""

import pytest

from apps.knowledge.retrieval.search import search

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(acme, make_base, add_passages):
    base = make_base(acme)
    add_passages(
        base,
        "员工每年享有十五天带薪年假。",
        "今天下雨，出门请带伞。",
        "５Ｇ 基站与 C++ 代码。",
        "100% cotton, it's snake_case.",
    )
    return base


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("雨", "下雨"),
        ("年假", "年假"),
        ("5G", "５Ｇ"),
        ("C++", "C++"),
        ("%", "100%"),
        ("_", "snake_case"),
        ("'", "it's"),
    ],
)
async def test_short_questions_match_lexically(ann, shop, query, text):
    result = await search(ann, query, knowledge_bases=[shop.pk])
    lexical = [passage for passage in result.passages if {"lexical", "trigram"} & set(passage.ranks)]
    assert [text in passage.text for passage in lexical] == [True]
