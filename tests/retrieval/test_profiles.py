"""Profiles: what is saved with a base is how everybody searches it; thresholds, reranking, diversity, expansion."""

import json

import pytest

from apps.common.errors import InvalidInput
from apps.knowledge.models import Chunk, PassageTokens, SearchProfile, Synonyms
from apps.knowledge.retrieval import expansion, questions, reranking
from apps.knowledge.retrieval.profiles import Profile
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import add_synonyms, save_search_profile
from apps.models import gateway, quirks
from apps.models.models import ModelConfig
from tests.retrieval.conftest import embedded
from tests.vendor.replies import Reply

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "what is asked"
TEXTS = ["The first text.", "The second text.", "The third text."]
COSINES = (0.50, 0.48, 0.45)


def near(cosines):
    """Embed texts at these cosines from the question, in their order."""
    import numpy as np

    def embed(texts):
        (question,) = embedded([QUESTION])
        rows = []
        for text, cosine in zip(texts, cosines, strict=True):
            (other,) = embedded([text])
            away = other - (other @ question) * question
            rows.append(cosine * question + (1 - cosine**2) ** 0.5 * away / np.linalg.norm(away))
        return np.array(rows)

    return embed


@pytest.fixture
def base(acme, make_base, add_passages):
    base = make_base(acme)
    add_passages(base, *TEXTS, embed=near(COSINES))
    return base


@pytest.fixture
def reranker(settings, vendor):
    settings.RERANK_MODEL = "scripted-rerank"
    settings.RERANK_BASE_URL = vendor.url
    settings.RERANK_API_KEY = "sk-test"
    quirks.forget()

    def scores(*values):
        results = [{"index": index, "relevance_score": value} for index, value in enumerate(values)]
        vendor.script([Reply(body={"results": results})], to="rerank")

    yield scores
    quirks.forget()


async def texts(ann, base, **options):
    found = await search(ann, QUESTION, knowledge_bases=[base.pk], **options)
    return [passage.text for passage in found.passages], found


@pytest.mark.parametrize(
    ("profile", "setting", "asked", "count"),
    [
        ({}, 0, 8, 100),
        ({}, 0, 30, 100),
        ({"top_k": 3, "candidates_per_hit": 4}, 0, 20, 30),
        ({}, 40, 8, 40),
        ({}, 40, 50, 50),
        ({"candidates": 20}, 40, 8, 20),
    ],
)
def test_how_many_are_proposed_is_saved_and_not_asked(settings, profile, setting, asked, count):
    settings.RETRIEVAL_CANDIDATE_K = setting
    assert Profile(**profile).candidate_count(asked) == count


async def test_a_setting_says_how_many_each_leg_proposes(ann, base, settings):
    settings.RETRIEVAL_CANDIDATE_K = 1
    found, _ = await texts(ann, base, top_k=1)
    one = await search(ann, QUESTION, knowledge_bases=[base.pk], top_k=1)
    assert found == [TEXTS[0]]
    assert next(stage.left for stage in one.stages if stage.name == "fusion") < len(TEXTS)


@pytest.mark.parametrize(("least", "count"), [(0, 3), (0.10, 3), (0.5, 2), (0.6, 2), (0.96, 0)])
async def test_a_threshold_is_about_the_score_of_its_stage(ann, base, reranker, least, count):
    reranker(0.95, 0.60, 0.10)
    found, result = await texts(ann, base, profile=Profile(thresholds={"rerank": least}))
    assert found == TEXTS[:count]
    assert result.empty_reason == ("" if count else "threshold")
    assert result.reranked_by == "model"


async def test_scores_that_are_logits_become_shares(ann, base, reranker):
    reranker(-3.0, 5.0, 0.0)
    found, result = await texts(ann, base, profile=Profile(thresholds={"rerank": 0.5}))
    assert found == [TEXTS[1], TEXTS[2]]
    assert [passage.rerank_score for passage in result.passages] == [0.993307, 0.5]
    reranker(0.4, 0.9, 0.1)  # of the same model: what looks like shares are logits too
    _, again = await texts(ann, base, profile=Profile(thresholds={"rerank": 0.5}))
    assert [passage.rerank_score for passage in again.passages] == [0.71095, 0.598688, 0.524979]


async def test_a_threshold_of_cosine_is_not_one_of_rerank(ann, base, reranker):
    reranker(0.1, 0.2, 0.9)
    found, _ = await texts(ann, base, profile=Profile(thresholds={"vector": 0.46}))
    assert found == [TEXTS[1], TEXTS[0]]


async def test_what_falls_below_is_not_replaced_by_what_came_after(ann, base, reranker):
    reranker(0.2, 0.9, 0.8)
    found, _ = await texts(ann, base, top_k=2, profile=Profile(thresholds={"rerank": 0.85}))
    assert found == [TEXTS[1]]


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 500},
        {"status": 400, "error": "too long"},
        {"body": {"results": [{"index": 0, "relevance_score": 1.0}]}},
        {"body": {"results": [{"index": index, "relevance_score": 0.5} for index in (0, 0, 1)]}},
        {"body": {"results": [{"index": index, "relevance_score": 0.5} for index in (0, 1, 7)]}},
        {"body": {"results": [{"index": index, "relevance_score": None} for index in (0, 1, 2)]}},
    ],
)
async def test_a_reranker_that_fails_leaves_the_fused_order(ann, base, reranker, vendor, answer):
    vendor.script([Reply(**answer)] * 4, to="rerank")
    found, result = await texts(ann, base, profile=Profile(thresholds={"rerank": 0.9}))
    assert found == TEXTS
    assert (result.degraded, result.reranked_by) == (("rerank",), "")
    assert {passage.rerank_score for passage in result.passages} == {None}


@pytest.mark.parametrize("stage", ["rerank", "vector", "expansion"])
async def test_a_model_that_hangs_costs_its_stage_alone(ann, base, reranker, fast, vendor, stage, monkeypatch):
    for module in (reranking, questions, expansion):
        monkeypatch.setattr(module, "PATIENCE_S", 0.3)
    slow = {"rerank": "rerank", "vector": "embeddings", "expansion": "chat"}[stage]
    vendor.script([Reply(delay=5)] * 4, to=slow)
    profile = Profile(rerank="auto" if stage == "rerank" else "off", expand_below=20)
    result = await search(ann, "first text", knowledge_bases=[base.pk], profile=profile)
    assert TEXTS[0] in [passage.text for passage in result.passages]
    assert stage in result.degraded


async def test_a_model_that_the_profile_names_needs_no_default(ann, acme, base, reranker, settings, vendor, in_thread):
    settings.RERANK_MODEL = ""
    settings.OUTBOUND_ALLOW = [vendor.url.removeprefix("http://").partition("/")[0]]
    row = in_thread(ModelConfig.objects.create, workspace=acme, kind="rerank", name="own", base_url=vendor.url)
    reranker(0.1, 0.2, 0.9)
    found, result = await texts(ann, base, profile=Profile(rerank_model=row.pk))
    assert (found, result.reranked_by) == (TEXTS[::-1], "model")
    assert (await texts(ann, base))[1].reranked_by == ""


async def test_without_rerank_nobody_is_asked(ann, base, reranker, vendor):
    await texts(ann, base, rerank=False)
    assert not [request for request in vendor.requests if request.path.endswith("/rerank")]


@pytest.fixture
def fast(settings, vendor):
    settings.OPENAI_BASE_URL = vendor.url
    settings.OPENAI_API_KEY = "sk-test"
    settings.CHAT_MODEL = "scripted-chat"


async def test_a_chat_model_orders_what_it_names_and_nothing_else(ann, base, fast, vendor):
    vendor.script([Reply('Here: {"order": [3, 3, 9, "x", 1]}')], to="chat")
    found, result = await texts(ann, base, profile=Profile(rerank="llm"))
    assert found == [TEXTS[2], TEXTS[0], TEXTS[1]]
    assert result.reranked_by == "llm"


async def test_a_chat_model_that_talks_leaves_the_fused_order(ann, base, fast, vendor):
    vendor.script([Reply("I would rather not.")], to="chat")
    found, result = await texts(ann, base, profile=Profile(rerank="llm"))
    assert (found, result.degraded) == (TEXTS, ("rerank",))


async def test_the_saved_profile_is_how_everybody_searches(ann, bea, base, in_thread):
    in_thread(save_search_profile, knowledge_base=base, settings={"top_k": 1}, actor=ann)
    for person in (ann, bea):
        assert (await texts(person, base))[0] == TEXTS[:1]
    assert (await texts(ann, base, top_k=2))[0] == TEXTS[:2]
    assert (await texts(ann, base, profile=Profile()))[0] == TEXTS


@pytest.fixture
def other(acme, make_base, add_passages):
    other = make_base(acme, "Other")
    add_passages(other, "Of the other.", embed=near([0.49]))
    return other


async def test_bases_that_disagree_keep_their_own_thresholds(ann, base, other, in_thread):
    in_thread(save_search_profile, knowledge_base=base, settings={"thresholds": {"vector": 0.495}}, actor=ann)
    found = await search(ann, QUESTION, knowledge_bases=[base.pk, other.pk], rerank=False)
    assert [passage.text for passage in found.passages] == [TEXTS[0], "Of the other."]


async def test_a_profile_of_other_times_is_left_out_and_said(ann, base, in_thread):
    in_thread(SearchProfile.objects.create, knowledge_base=base, chosen={"gone": 1})
    found, result = await texts(ann, base)
    assert (found, result.degraded) == (TEXTS, ("profile",))


@pytest.mark.parametrize(
    "chosen",
    [
        {"top_k": 0},
        {"thresholds": {"page": 1}},
        {"thresholds": {"rerank": "nan"}},
        {"weights": {"vector": 2}},
        {"x": 1},
    ],
)
def test_settings_that_cannot_be_are_refused(base, ann, chosen):
    with pytest.raises(InvalidInput):
        save_search_profile(knowledge_base=base, settings=chosen, actor=ann)
    assert not SearchProfile.objects.exists()


def test_a_rerank_model_of_another_workspace_is_refused(base, ann, mal):
    theirs = ModelConfig.objects.create(workspace=mal.workspaces.get(), kind="rerank", name="r", base_url="http://x/v1")
    with pytest.raises(InvalidInput):
        save_search_profile(knowledge_base=base, settings={"rerank_model": str(theirs.pk)}, actor=ann)


@pytest.fixture
def copies(acme, make_base, add_passages):
    """Five near-identical passages that fit best, and four others."""
    import numpy as np

    base = make_base(acme)
    same = near([0.9])(["Copied."])

    def embed(texts):
        copied = [same[0] + np.random.default_rng(place).normal(0, 1e-3, same.shape[1]) for place in range(5)]
        return np.array([*copied, *near((0.6, 0.58, 0.56, 0.54))(texts[5:])])

    add_passages(base, *(f"Copied, {n}." for n in range(5)), *(f"Other, {n}." for n in range(4)), embed=embed)
    return base


async def test_diversity_leaves_copies_out_and_keeps_the_number(ann, copies):
    found, result = await texts(ann, copies, top_k=5, profile=Profile(mmr=0.5))
    assert len(found) == 5
    assert sum("Copied" in text for text in found) == 1
    assert [passage.page for passage in result.passages] == [
        int(text[-2]) + (1 if "Cop" in text else 6) for text in found
    ]
    assert sum("Copied" in text for text in (await texts(ann, copies, top_k=5))[0]) == 5


@pytest.fixture
def cupboard(ann, acme, make_base, add_passages):
    base = make_base(acme)
    others = [f"The kettle of room {number} is in its cupboard." for number in range(6)]
    add_passages(base, "The laptop is in the cupboard.", "笔记本电脑在柜子里。", *others)
    add_synonyms(workspace=acme, words=["kettle", "boiler"], actor=ann)
    add_synonyms(workspace=acme, words=["notebook", "laptop"], actor=ann)
    add_synonyms(workspace=acme, words=["手提", "笔记本电脑"], actor=ann)
    return base


async def test_synonyms_find_what_the_words_do_not(ann, cupboard):
    base = cupboard
    for profile in (Profile(), Profile(expansion="synonyms"), Profile(thresholds={"fusion": 0.2})):
        for question, text in (("Where is the NOTEBOOK?", "laptop"), ("手提在哪里", "笔记本")):
            found = await search(ann, question, knowledge_bases=[base.pk], profile=profile)
            worded = [text in passage.text for passage in found.passages if "lexical" in passage.ranks]
            assert worded == [True], (profile, question)
            assert len(found.expanded) == 1
            assert "expansion" in [stage.name for stage in found.stages]
            # what the other question brought is judged by what it said, not by the sum of ranks
            assert all(trace.scores["fusion"] > 0.2 for trace in found.traces if "lexical" in trace.ranks)
    for question in ("Where is the kettle?", "Where is the cupboard?"):  # enough passages have it; it has no synonym
        found = await search(ann, question, knowledge_bases=[base.pk])
        assert found.expanded == ()
    off = await search(ann, "Where is the notebook?", knowledge_bases=[base.pk], profile=Profile(expansion="off"))
    assert off.expanded == ()


def test_synonyms_are_two_different_words_at_least(ann, acme):
    with pytest.raises(InvalidInput):
        add_synonyms(workspace=acme, words=["one", " ONE ", ""], actor=ann)
    assert not Synonyms.objects.exists()


async def test_a_model_asks_in_other_words_only_when_too_little_was_found(ann, base, fast, vendor):
    reply = Reply(json.dumps({"questions": ["the second text", QUESTION, 7]}))
    vendor.script([reply], to="chat")
    found, result = await texts(ann, base, profile=Profile(thresholds={"vector": 0.49}))
    assert result.expanded == ("the second text",)
    assert found
    _, enough = await texts(ann, base)
    assert enough.expanded == ()
    assert len([request for request in vendor.requests if request.path.endswith("/completions")]) == 1


@pytest.fixture
def foreign(acme, make_base, add_passages):
    """A base of the built-in model, as ingestion writes it: vectors and tokens."""
    base = make_base(acme, embedding_model="builtin:multilingual-e5-small", dimensions=384)
    given = ["出差住宿标准为每晚不超过五百元。", "员工每年有十五天带薪年假。", "会议室需要提前一天预订。"]
    model = gateway.resolve_reference("embedding", base.embedding_model, workspace_id=acme.pk)
    tokens = {}

    def embed(inputs):
        vectors, signs = gateway.embed_with_tokens_now(model, inputs)
        tokens.update(enumerate(signs))
        return vectors

    add_passages(base, *given, embed=embed)
    for place, chunk in enumerate(Chunk.objects.order_by("ordinal")):
        PassageTokens.objects.create(chunk=chunk, document=chunk.document, signs=tokens[place])
    return base


async def test_tokens_order_what_words_do_not_reach(ann, foreign):
    found = await search(ann, "How many days of paid leave do employees have?", knowledge_bases=[foreign.pk])
    assert "年假" in found.passages[0].text
    assert found.reranked_by == "built_in"
    assert all(0 < passage.rerank_score < 1 for passage in found.passages)


async def test_tokens_that_cannot_be_read_leave_the_fused_order(ann, foreign, broken_table):
    with broken_table("knowledge_passagetokens"):
        found = await search(ann, "How many days of paid leave do employees have?", knowledge_bases=[foreign.pk])
    assert (len(found.passages), found.reranked_by, found.degraded) == (3, "", ("rerank",))


async def test_tokens_stay_out_of_what_words_answer(ann, foreign):
    found = await search(ann, "员工带薪年假", knowledge_bases=[foreign.pk])
    assert "年假" in found.passages[0].text
    assert found.reranked_by == ""


async def test_the_watched_passage_is_traced_to_where_it_was_lost(ann, base, in_thread):
    last = in_thread(lambda: Chunk.objects.get(text=TEXTS[2]))
    _, result = await texts(ann, base, top_k=1, profile=Profile(candidates=1), watched=last.pk)
    (trace,) = [trace for trace in result.traces if trace.chunk_id == last.pk]
    assert (trace.lost_at, trace.ranks["vector"]) == ("legs", 3)
    assert trace.scores["vector"] == pytest.approx(0.45, abs=0.01)


@pytest.fixture
def mixed(acme, make_base, add_passages):
    """One English passage among Chinese ones about other things, as the built-in model embeds them."""
    base = make_base(acme, embedding_model="builtin:multilingual-e5-small", dimensions=384)
    given = [
        "Employees have fifteen days of paid annual leave.",
        "出差住宿标准为每晚不超过五百元。",
        "会议室需要提前一天预订。",
        "今天下雨，出门请带伞。",
        "打印机在三楼，纸在柜子里。",
        "访客请在前台登记并领取证件。",
    ]
    model = gateway.resolve_reference("embedding", base.embedding_model, workspace_id=acme.pk)
    add_passages(base, *given, embed=lambda inputs: gateway.embed_now(model, inputs, purpose="passage"))
    return base


async def test_a_question_reaches_the_other_language_past_its_own(ann, mixed):
    found = await search(ann, "员工一年有多少天带薪年假？", knowledge_bases=[mixed.pk], rerank=False)
    (english,) = [passage for passage in found.passages if passage.text.startswith("Employees")]
    assert english.ranks["vector"] == 1
