"""Filters of search: tags, folders, names, days, and the facts that a base keeps of its documents."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from apps.common.errors import InvalidInput
from apps.knowledge.models import Document
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.reading import document_info, grep_chunks, list_chunks, readable
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import create_folder

pytestmark = pytest.mark.django_db(transaction=True)

FACTS = {
    "a.md": {"year": 2024, "signed": True, "city": "Shanghai 上海", "due": "2026-05-31", "2026": "Budget", "7": 7},
    "b.md": {"year": 2025, "signed": False, "city": "Berlin", "due": "2026-06-30"},
    "c.md": {"year": "2025", "city": None},
    "d.md": {},
}


@pytest.fixture
def base(acme, ann, make_base, add_passages):
    """Four documents with one passage each, "Text of a.md" and so on."""
    base = make_base(acme)
    outer = create_folder(knowledge_base=base, name="Outer", actor=ann)
    inner = create_folder(knowledge_base=base, name="Inner", parent=outer, actor=ann)
    for number, (name, facts) in enumerate(FACTS.items()):
        document, _ = add_passages(base, f"Text of {name}", name=name)
        document.attributes, document.tags = facts, ["red", "blue"][: 2 - number] if number < 2 else []
        document.folder = {"a.md": outer, "b.md": inner}.get(name)
        document.save()
        day = datetime(2026, 5, 10 + number, 23, 30, tzinfo=UTC)
        Document.objects.filter(pk=document.pk).update(created_at=day)
    base.outer, base.inner = outer, inner
    return base


async def names(person, base, *filters):
    found = await search(person, "text", knowledge_bases=[base.pk], filters=[Filters.of(values) for values in filters])
    return "".join(sorted(passage.document[0] for passage in found.passages)), found.empty_reason


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "abcd"),
        ({"tags": ["red"]}, "ab"),
        ({"tags": ["red", "blue"]}, "a"),
        ({"name": "B.MD"}, "b"),
        ({"added_from": "2026-05-12"}, "cd"),
        ({"added_from": "2026-05-11", "added_to": "2026-05-12"}, "bc"),
        ({"metadata": [{"field": "year", "value": 2025}]}, "b"),
        ({"metadata": [{"field": "year", "op": "gte", "value": 2024}]}, "ab"),
        ({"metadata": [{"field": "year", "op": "lte", "value": 2024}]}, "a"),
        ({"metadata": [{"field": "signed", "value": True}]}, "a"),
        ({"metadata": [{"field": "signed", "op": "ne", "value": True}]}, "bcd"),
        ({"metadata": [{"field": "city", "op": "contains", "value": "shang"}]}, "a"),
        ({"metadata": [{"field": "city", "op": "contains", "value": "null"}]}, ""),
        ({"metadata": [{"field": "year", "op": "contains", "value": "20"}]}, "c"),
        ({"metadata": [{"field": "2026", "op": "contains", "value": "budg"}]}, "a"),
        ({"metadata": [{"field": "7", "op": "gte", "value": 7}]}, "a"),
        ({"metadata": [{"field": "7", "op": "lte", "value": 6}]}, ""),
        ({"metadata": [{"field": "due", "op": "gte", "value": "2026-06-01"}]}, "b"),
        ({"metadata": [{"field": "due", "op": "lte", "value": "2026-06-01"}, {"field": "year", "value": 2024}]}, "a"),
        ({"metadata": [{"field": "year__gte' OR 1=1", "op": "gte", "value": 0}]}, ""),
        ({"tags": ["green"]}, ""),
    ],
)
async def test_only_what_fits_is_found(ann, base, settings, values, expected):
    settings.TIME_ZONE = "UTC"
    with timezone.override("UTC"):
        assert await names(ann, base, values) == (expected, "" if expected else "filter")


async def test_a_day_is_a_day_where_the_person_is(ann, base):
    with timezone.override("Asia/Shanghai"):
        assert (await names(ann, base, {"added_from": "2026-05-12", "added_to": "2026-05-12"}))[0] == "b"


async def test_a_folder_includes_what_is_below_it(ann, base):
    assert (await names(ann, base, {"folders": [base.outer.pk]}))[0] == "ab"
    assert (await names(ann, base, {"folders": [base.inner.pk]}))[0] == "b"


async def test_filters_only_narrow_each_other(ann, base):
    assert (await names(ann, base, {"tags": ["red"]}, {"name": "b"}))[0] == "b"
    assert (await names(ann, base, {"tags": ["blue"]}, {"name": "b"}))[0] == ""


async def test_reading_is_filtered_too(ann, base, in_thread):
    red = [Filters(tags=("red", "blue"))]
    everything = in_thread(lambda: list(Document.objects.values_list("pk", flat=True)))
    assert len(await grep_chunks(ann, "text", knowledge_bases=[base.pk], filters=red)) == 1
    [row] = await document_info(ann, knowledge_bases=[base.pk], filters=red)
    assert (row["tags"], row["folder"], row["facts"]) == (["red", "blue"], "Outer", FACTS["a.md"])
    assert (row["folder_id"], row["total"]) == (str(base.outer.pk), 1)
    [newest] = await document_info(ann, knowledge_bases=[base.pk], limit=1)
    assert newest["total"] == 4
    assert len(await readable(ann, everything, knowledge_bases=[base.pk])) == 4
    assert len(await readable(ann, everything, knowledge_bases=[base.pk], filters=red)) == 1
    assert await readable(ann, everything, knowledge_bases=[]) == frozenset()
    read = [await list_chunks(ann, document_id=document, filters=red) for document in everything]
    assert sorted(map(len, read)) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "values",
    [
        {"tag": ["x"]},
        {"added_from": "soon"},
        {"metadata": [{"field": "", "value": 1}]},
        {"tags": [""] * 3},
        {"folders": 1},
        {"metadata": [{"field": "year", "op": "lte", "value": float("inf")}]},
    ],
)
def test_a_filter_that_cannot_be_is_refused(values):
    with pytest.raises(InvalidInput):
        Filters.of(values)


def test_a_filter_of_nothing_is_none():
    assert not Filters.of({})
    assert Filters.of({"added_to": timezone.localdate() - timedelta(days=1)})


def test_the_last_day_of_all_is_refused_as_it_has_no_day_after_it():
    with pytest.raises(InvalidInput):
        Filters.of({"added_to": "9999-12-31"})
    assert Filters.of({"added_to": "9999-12-30"}).apply(Document.objects.all()).count() == 0
