"""retrieval.search: what is found, in which order, and what happens when a part of it fails."""

import pytest

from apps.common.errors import InvalidInput
from apps.knowledge.models import Chunk, Document
from apps.knowledge.retrieval import legs
from apps.knowledge.retrieval.outage import SearchUnavailable
from apps.knowledge.retrieval.search import search
from apps.models import ledger
from apps.models.models import ModelConfig, UsageRecord
from tests.retrieval.conftest import MODEL, counted, embedded
from tests.vendor.replies import Reply

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "what is asked"
GONE = "openai_compatible:removed-long-ago"


@pytest.fixture
def shop(acme, make_base, add_passages):
    base = make_base(acme)
    add_passages(base, "员工每年享有十五天带薪年假。", "今天下雨，出门请带伞。")
    add_passages(base, "５Ｇ 基站与 C++ 代码。", "100% cotton, it's snake_case.", "Refunds take five working days.")
    return base


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("雨", "下雨"),
        ("年假", "年假"),
        ("5G", "５Ｇ"),
        ("C++", "C++"),
        ("Go 代 基", "C++"),
        ("%", "100%"),
        ("_", "snake_case"),
        ("'", "it's"),
        ("cotton", "cotton"),
        ("Refnds take five", "Refunds"),
    ],
)
async def test_short_and_odd_questions_match_lexically(ann, shop, query, text):
    result = await search(ann, query, knowledge_bases=[shop.pk])
    lexical = [passage for passage in result.passages if {"lexical", "trigram"} & set(passage.ranks)]
    assert [text in passage.text for passage in lexical] == [True]
    assert not result.degraded


@pytest.mark.parametrize(
    "query", ["\x00refunds", "refunds \ud800", "  refunds\n", "refunds' OR 1=1 --", "%s refunds {}"]
)
async def test_any_characters_are_only_text(ann, shop, query):
    result = await search(ann, query, knowledge_bases=[shop.pk])
    best = max(result.passages, key=lambda passage: -passage.ranks.get("lexical", 99))
    assert "Refunds" in best.text


@pytest.mark.parametrize("query", ["", " \n", "\x00"])
async def test_a_blank_question_is_refused(ann, shop, query):
    with pytest.raises(InvalidInput):
        await search(ann, query, knowledge_bases=[shop.pk])


@pytest.fixture
def family(acme, make_base, add_passages):
    """One passage with ten children that all fit, four with one; (base, passages)."""
    base = make_base(acme)
    loners = [(f"Loner {number}.", [f"Child of {number}.", f"Stranger {number}."]) for number in range(4)]

    def embed(texts):
        return embedded([QUESTION if "Child" in text else text for text in texts])

    passages = [("The family.", [f"Child {number}." for number in range(10)]), *loners]
    return base, add_passages(base, *passages, embed=embed)[1]


async def test_siblings_collapse_before_the_cut(ann, family):
    base, parents = family
    result = await search(ann, QUESTION, knowledge_bases=[base.pk], top_k=5)
    assert {passage.chunk_id for passage in result.passages} == {parent.pk for parent in parents}


@pytest.fixture
def small(acme, make_base, add_passages):
    """A base of 30 far passages beside one of 2,000 that are as near as can be."""
    large, small = make_base(acme, "Large"), make_base(acme, "Small")
    texts = [f"Near {place}." for place in range(2_000)]
    add_passages(large, *texts, embed=lambda texts: embedded([QUESTION] * len(texts)))
    add_passages(small, *(f"Far {number}." for number in range(30)))
    return small


async def test_a_small_base_is_not_starved_by_a_large_one(ann, small):
    result = await search(ann, QUESTION, knowledge_bases=[small.pk], top_k=10)
    assert len(result.passages) == 10
    assert {passage.knowledge_base_id for passage in result.passages} == {small.pk}


@pytest.fixture
def orphan(acme, make_base, add_passages):
    """A base whose embedding model is not configured any more."""
    base = make_base(acme, embedding_model=GONE)
    add_passages(base, "Refunds take five working days.")
    return base


async def test_a_lost_embedding_model_leaves_the_words(ann, orphan):
    result = await search(ann, "refunds", knowledge_bases=[orphan.pk])
    assert [passage.ranks for passage in result.passages] == [{"lexical": 1, "trigram": 1}]
    assert result.degraded == ("vector",)


async def test_a_down_vendor_leaves_the_words(ann, shop, vendor):
    vendor.script([Reply(status=500)] * 4, to="embeddings")
    result = await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert "Refunds" in result.passages[0].text
    assert result.degraded == ("vector",)


async def test_a_broken_lexical_index_leaves_the_vectors(ann, shop, broken_table):
    with broken_table("knowledge_posting"):
        result = await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert len(result.passages) == 5
    assert result.degraded == ("lexical",)


async def test_broken_vectors_leave_the_words(ann, shop, broken_table):
    with broken_table("knowledge_chunkvector"):
        result = await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert ["Refunds" in passage.text for passage in result.passages] == [True]
    assert result.degraded == ("vector",)


async def test_nothing_left_is_an_error_and_not_an_empty_result(ann, shop, broken_table):
    with (
        broken_table("knowledge_chunkvector"),
        broken_table("knowledge_posting"),
        pytest.raises(SearchUnavailable) as failed,
    ):
        await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert failed.value.details["causes"] == {"vector": "database_error", "lexical": "database_error"}
    assert "the database refused a query" in failed.value.message


async def test_the_cause_is_named_where_no_model_answers_either(ann, orphan, broken_table):
    with broken_table("knowledge_posting"), pytest.raises(SearchUnavailable) as failed:
        await search(ann, "refunds", knowledge_bases=[orphan.pk])
    assert failed.value.details["causes"] == {"embedding": "model_gone", "lexical": "database_error"}
    assert "no longer configured" in failed.value.message


async def test_passages_that_cannot_be_read_are_an_error_with_its_cause(ann, shop, monkeypatch):
    monkeypatch.setattr(legs, "passages_statement", lambda *_, **__: ("SELECT pg_sleep(0) FROM nowhere", {}))
    with pytest.raises(SearchUnavailable) as failed:
        await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert failed.value.details["causes"] == {"database": "database_error"}


async def test_broken_trigrams_leave_the_words(ann, shop, monkeypatch):
    monkeypatch.setattr(legs, "_verbatim", lambda query: ("verbatim AS (SELECT * FROM nowhere),", {}))
    result = await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert result.degraded == ("trigram",)
    assert result.passages[0].ranks["lexical"] == 1


async def test_slow_trigrams_are_given_up(ann, shop, monkeypatch):
    monkeypatch.setattr("apps.knowledge.retrieval.legs._verbatim", slow_trigrams)
    result = await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert result.degraded == ("trigram",)
    assert result.passages[0].ranks["lexical"] == 1


def slow_trigrams(query):
    score = "1.0 AS score, NULL::float8 AS coverage"
    return f"verbatim AS (SELECT c.id AS chunk_id, {score} FROM knowledge_chunk c, pg_sleep(5)),", {}


@pytest.fixture
def empty_base(acme, make_base):
    return make_base(acme, "Empty", embedding_model="")


async def test_an_empty_result_says_why(mal, bea, shop, empty_base):
    foreign = await search(mal, "refunds", knowledge_bases=[shop.pk])
    empty = await search(bea, "refunds", knowledge_bases=[empty_base.pk])
    assert (foreign.passages, foreign.empty_reason) == ((), "no_base")
    assert (empty.passages, empty.empty_reason) == ((), "nothing_indexed")


@pytest.fixture
def bases(acme, make_base, add_passages, settings, vendor):
    """Three bases, the last one embedded by a model of the workspace's own."""
    settings.OUTBOUND_ALLOW = [vendor.url.removeprefix("http://").partition("/")[0]]
    ModelConfig.objects.create(workspace=acme, kind="embedding", name="other", base_url=vendor.url)
    models = [f"openai_compatible:{MODEL}", f"openai_compatible:{MODEL}", "openai_compatible:other"]
    bases = [make_base(acme, f"Base {number}", embedding_model=model) for number, model in enumerate(models)]
    for base in bases:
        add_passages(base, f"Text of {base.name}.")
    return bases


async def test_two_models_embed_the_question_once_each(ann, bases, vendor):
    result = await search(ann, QUESTION, knowledge_bases=[base.pk for base in bases])
    asked = [request.body["model"] for request in vendor.requests if request.path.endswith("/embeddings")]
    assert sorted(asked) == ["other", MODEL]
    assert {passage.knowledge_base_id for passage in result.passages} == {base.pk for base in bases}


async def test_a_search_takes_four_statements(ann, shop):
    async with counted() as statements:
        await search(ann, "refunds", knowledge_bases=[shop.pk])
    assert len(statements) == 4  # bases, vectors, words, passages


async def test_a_hit_says_where_in_it_the_best_child_stands(ann, family, in_thread):
    base, _parents = family
    in_thread(lambda: Chunk.objects.filter(text="Child of 2.").update(start=5))
    result = await search(ann, QUESTION, knowledge_bases=[base.pk], top_k=5)
    assert {passage.text: passage.focus for passage in result.passages if "Loner" in passage.text} == {
        f"Loner {number}.": 5 if number == 2 else 0 for number in range(4)
    }


async def test_what_one_may_not_read_changes_no_score(ann, bea, shop, add_passages, in_thread):
    before = await search(bea, "refunds", knowledge_bases=[shop.pk])

    def hide():
        document, _ = add_passages(shop, *(f"Refunds and refunds, {number}." for number in range(9)))
        Document.objects.filter(pk=document.pk).update(restricted=True)

    in_thread(hide)
    after = await search(bea, "refunds", knowledge_bases=[shop.pk])
    assert [trace.scores for trace in after.traces] == [trace.scores for trace in before.traces]
    assert len((await search(ann, "refunds", knowledge_bases=[shop.pk], top_k=50)).passages) > len(before.passages)


async def test_each_further_model_costs_one_statement_more(ann, bases):
    async with counted() as statements:
        await search(ann, "Text of", knowledge_bases=[base.pk for base in bases])
    assert len(statements) == 5


async def test_a_search_is_booked_to_who_searched(ann, shop, in_thread):
    await search(ann, "refunds", knowledge_bases=[shop.pk])
    in_thread(ledger.flush)
    rows = in_thread(lambda: list(UsageRecord.objects.values("workspace_id", "user_id", "purpose", "turn_id")))
    assert rows == [{"workspace_id": shop.workspace_id, "user_id": ann.pk, "purpose": "query", "turn_id": None}]
