"""Arithmetic of evaluations, against numbers worked out by hand."""

from math import log2

import pytest

from apps.evals.metrics import score_labels, score_rankings

RELEVANT = {"q1": {"a": 1}, "q2": {"b": 1, "c": 1}, "q3": {"d": 1}}


def test_metrics_are_the_textbooks():
    score = score_rankings({"q1": ["x", "a"], "q2": ["b", "x", "c"], "q3": ["d"]}, RELEVANT)
    ideal = 1 + 1 / log2(3)
    assert (score.n, score.scored, score.failed) == (3, 3, 0)
    assert score.metrics == {
        "hit@1": pytest.approx(2 / 3, abs=1e-4),
        "hit@10": 1.0,
        "recall@10": 1.0,
        "mrr@10": pytest.approx((0.5 + 1 + 1) / 3, abs=1e-4),
        "ndcg@10": pytest.approx((1 / log2(3) + (1 + 1 / log2(4)) / ideal + 1) / 3, abs=1e-4),
    }


def test_the_eleventh_place_is_not_seen():
    ranking = [f"x{number}" for number in range(10)] + ["a"]
    assert score_rankings({"q1": ranking}, RELEVANT).metrics["hit@10"] == 0


def test_nothing_found_counts_as_zero_and_a_failure_does_not_count():
    score = score_rankings({"q1": ["a"], "q2": [], "q3": None}, RELEVANT)
    assert (score.n, score.scored, score.failed) == (3, 2, 1)
    assert score.metrics["hit@1"] == 0.5
    assert score.coverage == pytest.approx(2 / 3)
    assert not score.valid


def test_a_run_in_which_nothing_was_found_scores_zero():
    score = score_rankings({"q1": [], "q2": []}, RELEVANT)
    assert score.valid
    assert set(score.metrics.values()) == {0.0}


def test_a_run_that_failed_whole_has_no_metrics():
    score = score_rankings({"q1": None}, RELEVANT)
    assert (score.metrics, score.valid) == ({}, False)


def test_labels():
    score = score_labels(["a", "a", "b", "c"], ["a", "b", "b", None])
    assert (score.n, score.scored, score.failed) == (4, 3, 1)
    assert score.metrics["accuracy"] == pytest.approx(2 / 3, abs=1e-4)
    assert score.metrics["macro_f1"] == pytest.approx((2 / 3 + 2 / 3) / 2, abs=1e-4)
