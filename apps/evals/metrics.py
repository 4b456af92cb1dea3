"""Arithmetic of evaluations, by libraries that others check too. No database.

What failed is never left out silently and never counted as zero: means are over what was scored,
beside them stand how many that were and how many failed, and a run that scored too few is invalid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEAST_COVERAGE = 0.95  # share of the items that must have been scored for the means to be worth anything
DEPTH = 10  # places of a ranking that are judged


@dataclass(frozen=True, slots=True)
class Score:
    """Means over ``scored`` of ``n`` items; ``failed`` of them gave an error instead of an answer."""

    n: int
    scored: int
    failed: int
    metrics: dict[str, float]

    @property
    def coverage(self) -> float:
        """The share that was scored, 0 to 1."""
        return self.scored / self.n if self.n else 0.0

    @property
    def valid(self) -> bool:
        """Whether enough was scored for the means to say something."""
        return self.n > 0 and self.coverage >= LEAST_COVERAGE


def score_rankings(rankings: Mapping[str, Sequence[str] | None], relevant: Mapping[str, Mapping[str, int]]) -> Score:
    """Score rankings of documents against judgements.

    Args:
        rankings: question -> documents, best first; an empty ranking found nothing and counts as
            such, None failed and does not count.
        relevant: question -> document -> relevance above 0. Questions that are not in ``rankings``
            were not asked.

    Returns:
        hit@1, hit@10, recall@10, mrr@10 and ndcg@10, each in [0, 1]; empty if nothing was scored.

    Source: ir-measures over trec_eval: nDCG with gains as judged and log2 discount.
    """
    import ir_measures
    from ir_measures import RR, R, Success, nDCG

    answered = {query: ranking for query, ranking in rankings.items() if ranking is not None}
    n, failed = len(rankings), len(rankings) - len(answered)
    if not answered:
        return Score(n, 0, failed, {})
    names = {
        "hit@1": Success @ 1,
        "hit@10": Success @ DEPTH,
        "recall@10": R @ DEPTH,
        "mrr@10": RR @ DEPTH,
        "ndcg@10": nDCG @ DEPTH,
    }
    judged = [
        ir_measures.Qrel(query, document, relevance)
        for query in answered
        for document, relevance in relevant[query].items()
    ]
    # Scores that fall with the place: ties would be broken by document id.
    run = [
        ir_measures.ScoredDoc(query, document, 1.0 / place)
        for query, ranking in answered.items()
        for place, document in enumerate(ranking[:DEPTH], start=1)
    ]
    totals = dict.fromkeys(names, 0.0)
    measures = {measure: name for name, measure in names.items()}
    for found in ir_measures.iter_calc(list(measures), judged, run):
        totals[measures[found.measure]] += found.value
    # A question whose ranking is empty has no row in the run: it adds nothing, and is counted.
    return Score(n, len(answered), failed, {name: round(total / len(answered), 4) for name, total in totals.items()})


def score_labels(expected: Sequence[str], given: Sequence[str | None]) -> Score:
    """Score labels against the right ones; None is an item that failed.

    Returns:
        accuracy, and macro_f1 over the labels that are expected or were given.
    """
    from sklearn.metrics import accuracy_score, f1_score

    pairs = [(right, label) for right, label in zip(expected, given, strict=True) if label is not None]
    n, failed = len(expected), len(expected) - len(pairs)
    if not pairs:
        return Score(n, 0, failed, {})
    right, labels = zip(*pairs, strict=True)
    return Score(
        n,
        len(pairs),
        failed,
        {
            "accuracy": round(float(accuracy_score(right, labels)), 4),
            "macro_f1": round(float(f1_score(right, labels, average="macro", zero_division=0)), 4),
        },
    )
