"""Passages by id, by place and by pattern; documents' metadata."""

import pytest

from apps.knowledge.models import Chunk
from apps.knowledge.retrieval.reading import (
    PatternRejected,
    PatternTooSlow,
    document_info,
    grep_chunks,
    list_chunks,
)
from apps.knowledge.retrieval.search import search

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manual(acme, make_base, add_passages):
    """(base, document, passages)"""
    base = make_base(acme)
    passages = [
        ("Order ERR-1042 is late.", ["Order ERR-1042", "is late."]),
        "第二段：年假。\nEnd of it",
        "x" * 60 + "!",
    ]
    return base, *add_passages(base, *passages, name="manual.md")


async def test_passages_come_in_the_order_asked_for(ann, manual):
    _base, _document, parents = manual
    wanted = [parents[2].pk, parents[0].pk]
    assert [passage.chunk_id for passage in await list_chunks(ann, chunk_ids=wanted)] == wanted


@pytest.fixture
def child_of_first(manual):
    return manual[2][0].children.order_by("ordinal")[1].pk


async def test_a_child_stands_for_its_passage(ann, manual, child_of_first):
    found = await list_chunks(ann, chunk_ids=[child_of_first])
    assert [passage.text for passage in found] == ["Order ERR-1042 is late."]


async def test_a_document_is_read_in_order_from_a_place(ann, manual):
    _base, document, parents = manual
    found = await list_chunks(ann, document_id=document.pk, first=1, count=1)
    assert [(passage.chunk_id, passage.page, passage.document) for passage in found] == [
        (parents[1].pk, 2, "manual.md")
    ]
    assert await list_chunks(ann, document_id=document.pk, first=99) == []


async def test_a_hit_says_its_place_and_what_stands_around_it_is_read_by_that(ann, manual, in_thread):
    base, document, parents = manual
    [hit] = await grep_chunks(ann, "xxx", knowledge_bases=[base.pk])
    in_thread(Chunk.objects.filter(pk=parents[0].pk).update, disabled=True)
    around = await list_chunks(ann, document_id=document.pk, first=hit.place - 1, count=2)
    assert [(passage.chunk_id, passage.place) for passage in around] == [(parents[1].pk, 1), (parents[2].pk, 2)]
    found = await search(ann, "年假", knowledge_bases=[base.pk])
    assert {passage.chunk_id: passage.place for passage in found.passages} == {parents[1].pk: 1, parents[2].pk: 2}


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        (r"err-\d+", 0),
        (r"\bORDER\b", 0),
        (r"(?i)(?P<code>ERR)-(?P<number>\d{4})", 0),
        ("年假", 1),
        (r"^End", 1),
        (r"段：.*$", 1),
    ],
)
async def test_a_pattern_finds_its_passage(ann, manual, pattern, place):
    base, _document, parents = manual
    found = await grep_chunks(ann, pattern, knowledge_bases=[base.pk])
    assert [passage.chunk_id for passage in found] == [parents[place].pk]


async def test_the_focus_is_where_the_match_begins(ann, manual):
    (passage,) = await grep_chunks(ann, r"ERR-\d+", knowledge_bases=[manual[0].pk])
    assert passage.text[passage.focus :].startswith("ERR-1042")


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", "", " ", "\x00", "x" * 501, r"a\1", "(?<name>a)"])
async def test_a_pattern_that_is_none_is_refused_with_a_reason(ann, manual, pattern):
    with pytest.raises(PatternRejected) as refused:
        await grep_chunks(ann, pattern, knowledge_bases=[manual[0].pk])
    assert refused.value.details["reason"]


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "(x|x|x)*y", r"(x*)*\1z", "(.*)(.*)(.*)(.*)z"])
async def test_a_hostile_pattern_ends_in_time(ann, manual, pattern, monkeypatch):
    monkeypatch.setattr("apps.knowledge.retrieval.reading.GREP_TIMEOUT_MS", 300)
    try:
        assert await grep_chunks(ann, pattern, knowledge_bases=[manual[0].pk]) == []
    except PatternTooSlow:
        pass  # just as good: it ended


async def test_documents_are_described_without_their_text(ann, manual):
    base, document, _parents = manual
    (row,) = await document_info(ann, knowledge_bases=[base.pk])
    assert row["document_id"] == str(document.pk)
    assert (row["name"], row["knowledge_base"], row["status"], row["passages"]) == ("manual.md", "Base", "indexed", 3)
    assert await document_info(ann, document_ids=[base.pk]) == []
