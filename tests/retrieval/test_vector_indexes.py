"""Indexes of vectors: whose they are, that they are used, and that nothing is lost by them."""

import pytest
from django.db import connection

from apps.knowledge.models import KnowledgeBase
from apps.knowledge.retrieval import execution, legs, vector_indexes
from apps.knowledge.retrieval.legs import vector_leg
from apps.knowledge.retrieval.outage import SearchUnavailable
from apps.knowledge.retrieval.scope import readable_documents
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import delete_knowledge_base
from tests.retrieval.conftest import embedded
from tests.retrieval.test_search import slow_trigrams
from tests.vendor.server import DIMENSIONS

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "what is asked"
NEAR = 1_500


@pytest.fixture
def bases(acme, make_base, add_passages):
    """A large base full of passages next to the question, and a small one of far ones; the large one is indexed."""
    import numpy as np

    large, small = (make_base(acme, name, dimensions=DIMENSIONS) for name in ("Large", "Small"))
    rng = np.random.default_rng(3)

    def embed(texts):
        found = embedded([QUESTION] * len(texts)) + rng.normal(0, 0.3, (len(texts), DIMENSIONS))
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    add_passages(large, *(f"Near {n}." for n in range(NEAR)), embed=embed)
    add_passages(large, *(f"Other near {n}." for n in range(30)), name="other.md", embed=embed)
    add_passages(small, *(f"Far {n}." for n in range(30)))
    yield large, small
    with connection.cursor() as cursor:
        for name in vector_indexes._existing():
            cursor.execute(f'DROP INDEX IF EXISTS "{name}"')


def maintain():
    return vector_indexes.maintain(large=1_000, small=500)


async def found(person, base, **options):
    result = await search(person, QUESTION, knowledge_bases=[base.pk], rerank=False, **options)
    return [passage.text for passage in result.passages]


async def test_a_large_base_is_searched_by_its_own_index_and_finds_the_same(ann, bases, in_thread):
    large, small = bases
    before = await found(ann, large, top_k=10), await found(ann, small, top_k=10)
    assert in_thread(maintain).built == (vector_indexes.index_name(large.pk, DIMENSIONS),)
    assert in_thread(maintain) == vector_indexes.Outcome()
    assert (await found(ann, large, top_k=10), await found(ann, small, top_k=10)) == before
    assert f"vectors_{large.pk.hex}_{DIMENSIONS}" in in_thread(plan, ann, large)


def plan(person, base):
    """Return how PostgreSQL walks the indexed base."""
    statement, parameters = vector_leg(
        readable_documents(person), bases=[base.pk], vector=f"{[0.25] * DIMENSIONS}", indexed=[base.pk],
        dimensions=DIMENSIONS,
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # earlier tests leave the planner with another picture of the tables
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}", parameters)
        return "\n".join(row[0] for row in cursor.fetchall())


async def test_the_walk_goes_on_past_what_one_may_not_read(bea, bases, in_thread):
    large, _ = bases
    in_thread(maintain)
    in_thread(lambda: large.documents.filter(name="notes.md").update(restricted=True))
    texts = await found(bea, large, top_k=10)
    assert len(texts) == 10
    assert all(text.startswith("Other near") for text in texts)


async def test_where_the_walk_ends_too_soon_the_base_is_scanned(bea, bases, in_thread, monkeypatch):
    large, _ = bases
    in_thread(maintain)
    in_thread(lambda: large.documents.filter(name="notes.md").update(restricted=True))
    monkeypatch.setattr(execution, "_WALK", execution._WALK.replace("'40000'", "'50'").replace("'400'", "'20'"))
    texts = await found(bea, large, top_k=30)
    assert len(texts) == 30
    assert all(text.startswith("Other near") for text in texts)


async def test_in_a_large_base_words_and_trigrams_have_each_their_own_time(ann, bases, in_thread, monkeypatch):
    large, _ = bases
    in_thread(maintain)
    whole = await search(ann, "Near 77.", knowledge_bases=[large.pk], rerank=False)
    words = legs._bm25
    slow = "FROM pg_sleep(0.4), knowledge_posting p"
    monkeypatch.setattr(legs, "_bm25", lambda lone: words(lone).replace("FROM knowledge_posting p", slow))
    slowed = await search(ann, "Near 77.", knowledge_bases=[large.pk], rerank=False)
    assert any({"lexical", "trigram"} <= set(passage.ranks) for passage in whole.passages)
    assert [(found.chunk_id, found.ranks) for found in slowed.passages] == [
        (found.chunk_id, found.ranks) for found in whole.passages
    ]
    assert not slowed.degraded
    monkeypatch.setattr(legs, "_verbatim", slow_trigrams)
    given_up = await search(ann, "Near 77.", knowledge_bases=[large.pk], rerank=False)
    assert given_up.degraded == ("trigram",)
    assert [stage.detail for stage in given_up.stages if stage.name == "trigram"] != [{}]
    assert any("lexical" in found.ranks for found in given_up.passages)


async def test_trigrams_that_find_nothing_are_no_answer_by_themselves(ann, bases, in_thread, broken_table):
    large, _ = bases
    in_thread(maintain)
    with (
        broken_table("knowledge_posting"),
        broken_table("knowledge_chunkvector"),
        pytest.raises(SearchUnavailable) as failed,
    ):
        await search(ann, "refunds", knowledge_bases=[large.pk])
    assert failed.value.details["causes"] == {"vector": "database_error", "lexical": "database_error"}


async def test_what_is_no_longer_wanted_is_dropped(ann, bases, in_thread):
    large, _ = bases
    name = in_thread(maintain).built[0]
    in_thread(delete_knowledge_base, knowledge_base=large, actor=ann)
    assert in_thread(maintain).dropped == (name,)


def test_vectors_too_long_for_an_index_stay_with_the_scan(bases):
    large, _ = bases
    KnowledgeBase.objects.filter(pk=large.pk).update(dimensions=vector_indexes.MOST_DIMENSIONS + 1)
    assert maintain() == vector_indexes.Outcome()


async def test_it_is_set_aside_while_many_come_in_and_built_again(ann, bases, in_thread, monkeypatch):
    from apps.knowledge.models import Document

    large, small = bases
    before = await found(ann, large, top_k=10)
    name = in_thread(maintain).built[0]
    assert not in_thread(vector_indexes.set_aside, large.pk, DIMENSIONS, 10)
    assert not in_thread(vector_indexes.set_aside, small.pk, DIMENSIONS, vector_indexes.MANY)  # has none
    assert in_thread(vector_indexes.set_aside, large.pk, DIMENSIONS, vector_indexes.MANY)
    assert in_thread(vector_indexes._existing) == {}
    assert await found(ann, large, top_k=10) == before
    monkeypatch.setattr(vector_indexes, "QUEUE", 1)
    monkeypatch.setattr(vector_indexes, "OF_A_DOCUMENT", 1_000)
    in_thread(Document.objects.filter(name="other.md").update, status="uploaded")
    assert in_thread(maintain).built == ()  # a queue of documents is on its way
    in_thread(Document.objects.filter(name="other.md").update, status="indexed")
    assert in_thread(maintain).built == (name,)
    in_thread(Document.objects.filter(name="other.md").update, status="uploaded")
    monkeypatch.setattr(vector_indexes, "SHARE", 0.001)
    assert not in_thread(vector_indexes.set_aside, large.pk, DIMENSIONS, vector_indexes.MANY)  # little beside the rest
    assert in_thread(maintain) == vector_indexes.Outcome()
    monkeypatch.setattr(vector_indexes, "SHARE", 10)
    assert in_thread(vector_indexes.set_aside, large.pk, DIMENSIONS, 10)
