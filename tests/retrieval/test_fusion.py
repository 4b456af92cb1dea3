"""Fusion: what must hold of any rankings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.knowledge.retrieval.candidates import by_leg, foreign, fused
from apps.knowledge.retrieval.fusion import (
    DOUBT,
    Scored,
    convex_combination,
    parts_of,
    reciprocal_rank_fusion,
    stretched,
    total,
)
from apps.knowledge.retrieval.profiles import Profiles

IDS = st.lists(st.integers(0, 30), max_size=12, unique=True)
RANKINGS = st.dictionaries(st.sampled_from(["vector", "lexical", "trigram"]), IDS, max_size=3)
SCORES = st.dictionaries(st.integers(0, 30), st.floats(-1, 50), max_size=12)
LEGS = st.dictionaries(
    st.sampled_from(["vector", "lexical", "trigram"]),
    SCORES.map(lambda scores: Scored(scores, sorted(scores, key=scores.get, reverse=True)[:8], -1.0)),
    max_size=3,
)
WEIGHTS = {"vector": 0.6, "lexical": 0.4, "trigram": 0.2}


@given(RANKINGS)
def test_rrf_ranks_every_id_once_and_within_bounds(rankings):
    fused = reciprocal_rank_fusion(rankings)
    assert sorted(found for found, _ in fused) == sorted({found for ids in rankings.values() for found in ids})
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
    assert all(0 < score <= len(rankings) / 61 for _, score in fused)


@given(IDS)
def test_rrf_of_one_ranking_is_that_ranking(ids):
    assert [found for found, _ in reciprocal_rank_fusion({"vector": ids})] == ids


def test_rrf_adds_the_papers_terms():
    fused = dict(reciprocal_rank_fusion({"vector": ["a", "b"], "lexical": ["b"]}, weights={"lexical": 0.5}))
    assert fused["b"] == pytest.approx(1 / 62 + 0.5 / 61)


def test_rrf_refuses_negative_numbers():
    with pytest.raises(ValueError, match="negative"):
        reciprocal_rank_fusion({}, k=-1)


@given(LEGS)
def test_convex_scores_lie_in_zero_to_one_and_fall(legs):
    fused = convex_combination(legs, weights=WEIGHTS)
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in scores)
    assert {found for found, _ in fused} == {found for leg in legs.values() for found in leg.candidates}


@given(LEGS, st.floats(0.1, 9), st.floats(-5, 5))
def test_convex_does_not_mind_a_legs_scale(legs, factor, shift):
    moved = {
        name: Scored(
            {found: score * factor + shift for found, score in leg.scores.items()},
            leg.candidates,
            leg.floor * factor + shift,
        )
        for name, leg in legs.items()
    }
    before, after = (dict(convex_combination(each, weights=WEIGHTS)) for each in (legs, moved))
    assert before.keys() == after.keys()


def test_a_candidate_of_one_leg_has_its_true_score_in_the_other():
    legs = {
        "vector": Scored({"a": 0.9, "b": 0.5, "c": 0.8}, ["a", "b"], 0.5),
        "lexical": Scored({"c": 3.0, "a": 1.0}, ["c"], 0.0),
    }
    fused = dict(convex_combination(legs, weights={"vector": 0.5, "lexical": 0.5}))
    assert fused["c"] == pytest.approx(0.5 * 0.75 + 0.5)
    assert fused["a"] == pytest.approx(0.5 + 0.5 / 3)
    assert fused["b"] == 0


def test_stretched_is_even_where_all_are_alike():
    assert stretched([2.0, 2.0]) == [1.0, 1.0]
    assert stretched([]) == []


def test_the_best_of_weak_matches_is_worth_as_much_as_it_covers():
    legs = {
        "vector": Scored({"a": 0.9, "b": 0.8}, ["a", "b"]),
        "lexical": Scored({"b": 3.0}, ["b"], 0.0, 0.2),
    }
    fused = dict(convex_combination(legs, weights={"vector": 0.5, "lexical": 0.5}))
    assert fused["a"] == pytest.approx(0.5)
    assert fused["b"] == pytest.approx(0.5 * 0.2)


def test_cosines_of_two_models_meet_on_one_scale_and_stay_what_they_are():
    def rows(base, *cosines):
        common = {"knowledge_base_id": base, "coverage": None, "width": 1.0, "leg": "vector"}
        return [
            {**common, "rank": rank, "score": cosine, "chunk_id": (base, rank)}
            for rank, cosine in enumerate(cosines, start=1)
        ]

    near = by_leg({"vector 0": rows("e5", 0.9, 0.88, 0.8), "vector 1": rows("other", 0.4, 0.1)})["vector"]
    assert [row["score"] for row in near] == [0.9, 0.4, 0.88, 0.8, 0.1]
    assert [row["rank"] for row in near] == [1, 2, 3, 4, 5]
    profiles = Profiles()
    best = fused("q", {"vector": near}, profiles, 5)
    assert [one.scores["vector"] for one in best[:3]] == [0.9, 0.4, 0.88]
    assert [round(one.score, 2) for one in best] == [1.0, 1.0, 0.8, 0.0, 0.0]
    alone = by_leg({"vector 0": rows("e5", 0.9, 0.8), "vector 1": rows("other", 0.3)})["vector"]
    assert [row["score"] for row in alone] == [0.9, 0.3, 0.8]  # one alone is not the best of anything


@pytest.mark.parametrize(
    ("words", "top", "expected"),
    [(None, 0.0, 0.8), (None, 1.0, 0.8 * (1 - DOUBT / 2)), (None, 0.5, 0.8 * (1 - DOUBT / 4)), (3.0, 1.0, 0.9)],
)
def test_who_can_say_nothing_of_a_passage_is_not_asked_about_it(words, top, expected):
    """Better words count, none do not; but what the words found elsewhere casts doubt on it."""
    found = {"b": 2.0, "c": 0.0} if words is None else {"a": words, "b": 2.0, "c": 0.0}
    legs = {
        "vector": Scored({"a": 0.9, "b": 1.0, "c": 0.5}, ["a", "b", "c"]),
        "lexical": Scored(found, ["b"], 0.0, top, {"a"}),
    }
    parts = parts_of(legs, weights={"vector": 0.5, "lexical": 0.5})
    assert total(parts["a"]) == pytest.approx(expected)
    assert sum(part.share for part in parts["a"].values()) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("query", "text", "said"),
    [
        ("年假有多少天？", "Employees have fifteen days.", True),
        ("Super Bowl 谁赢了？", "The Broncos won.", True),
        ("年假有多少天？", "员工有十五天年假。", False),
        ("年假有多少天？", "Kubernetes 部署步骤", False),
        ("how many days?", "员工有十五天年假。", True),
        ("how many days?", "Employees have fifteen days.", False),
    ],
)
def test_a_passage_in_another_script_is_beyond_the_words(query, text, said):
    assert foreign(query, [len(text.encode()) / len(text)]) == [said]
