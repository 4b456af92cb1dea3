"""Many rankings into one. Plain Python: no database, no models."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Id = TypeVar("Id")

DOUBT = 0.35  # measured: docs/decisions/fusion.md


@dataclass(frozen=True, slots=True)
class Scored(Generic[Id]):
    """What one retriever found.

    ``scores`` may reach further down than ``candidates``, so that a passage that another retriever
    brings has its true score here too. ``floor`` is the score of everything that is not in it. ``top``
    is what its best is worth, 0 to 1: the best of weak matches is no full one. Of ``mute`` ids it cannot know much, as
    words cannot of passages in another language: there the other retrievers' verdict stands where it is the better one,
    doubted where this retriever found something good elsewhere.
    """

    scores: Mapping[Id, float]
    candidates: Sequence[Id]
    floor: float = 0.0
    top: float = 1.0
    mute: Collection[Id] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """What one retriever gave to a score: its share, and its own score in [0, 1]."""

    share: float
    score: float


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[Id]],
    *,
    weights: Mapping[str, float] | None = None,
    k: int = 60,
) -> list[tuple[Id, float]]:
    """Merge rankings of the same passages into one, by rank alone.

    Scores of different retrievers are not comparable (cosine lies in [-1, 1], BM25 has no upper
    bound), ranks are: a passage earns ``weight / (k + rank)`` from each list that has it.

    Args:
        rankings: retriever name -> passage ids, best first, each id at most once; lengths may
            differ and a list may be empty.
        weights: retriever name -> weight, 1.0 where absent. Unitless, must not be negative.
        k: damping in ranks; a larger k trusts the top places less. 60 is the paper's value.

    Returns:
        (passage id, score) pairs, best first, ties by id so that a run can be repeated. A score
        lies in [0, sum of weights / (k + 1)] and means nothing outside this list.

    Raises:
        ValueError: k < 0, or a weight is negative.

    Source: Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009; the weights are ours. O(n log n) in distinct ids.
    """
    weights = weights or {}
    if k < 0 or any(weight < 0 for weight in weights.values()):
        raise ValueError("k and weights must not be negative")
    scores: defaultdict[Id, float] = defaultdict(float)
    for name, ids in rankings.items():
        for rank, passage_id in enumerate(ids, start=1):
            scores[passage_id] += weights.get(name, 1.0) / (k + rank)
    return _ordered(scores.items())


def convex_combination(legs: Mapping[str, Scored[Id]], *, weights: Mapping[str, float]) -> list[tuple[Id, float]]:
    """Merge what retrievers found by their true scores, each stretched to [0, its top] over this query.

    A passage that only one retriever lists gets the other's real score where that is known, its
    floor where it is not: being absent from a short list is weak evidence, a low score is not.
    A retriever that scores all candidates alike adds the same to each.

    Args:
        legs: retriever name -> its scores; a larger score is better.
        weights: retriever name -> share; those of the retrievers that found something are scaled
            to add up to 1, so that a missing retriever does not lower the scores.

    Returns:
        (passage id, score in [0, 1]) pairs, best first, ties by id, of all the legs' candidates.

    Raises:
        ValueError: a weight is negative.

    Source: Bruch, Gai & Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023; ``top`` and
    ``mute`` are ours.
    """
    return _ordered((found, total(parts)) for found, parts in parts_of(legs, weights=weights).items())


def parts_of(legs: Mapping[str, Scored[Id]], *, weights: Mapping[str, float]) -> dict[Id, dict[str, Part]]:
    """Return what each retriever gives to each passage's score, see ``convex_combination``.

    The shares add up to 1, less what is doubted where one is mute.
    """
    if any(weight < 0 for weight in weights.values()):
        raise ValueError("weights must not be negative")
    present = {name: leg for name, leg in legs.items() if leg.candidates}
    sum_of_weights = sum(weights.get(name, 0.0) for name in present) or 1.0
    union = list({candidate: None for leg in present.values() for candidate in leg.candidates})
    parts: dict[Id, dict[str, Part]] = {candidate: {} for candidate in union}
    for name, leg in present.items():
        share = weights.get(name, 0.0) / sum_of_weights
        for candidate, score in zip(union, stretched([leg.scores.get(one, leg.floor) for one in union]), strict=True):
            parts[candidate][name] = Part(share, leg.top * score)
    for candidate, own in parts.items():
        mute = {name: present[name].top for name in own if candidate in present[name].mute}
        if mute and len(mute) < len(own):
            parts[candidate] = _without(own, mute)
    return parts


def _without(parts: Mapping[str, Part], mute: Mapping[str, float]) -> dict[str, Part]:
    """Leave out what mute retrievers say unless it is better than what the others do.

    The stronger the best of one that is left out is elsewhere, the more it is doubted that the answer is here: all
    shares shrink, by up to DOUBT of its own.
    """
    heard = {name: part for name, part in parts.items() if name not in mute}
    share = sum(part.share for part in heard.values())
    verdict = total(heard) / share if share else 0.0
    heard |= {name: parts[name] for name, top in mute.items() if parts[name].score > verdict * (1 - DOUBT * top)}
    share = sum(part.share for part in heard.values()) or 1.0
    left = 1 - DOUBT * sum(parts[name].share * top for name, top in mute.items() if name not in heard)
    return {name: Part(left * part.share / share, part.score) for name, part in heard.items()}


def total(parts: Mapping[str, Part]) -> float:
    """Return the score that parts add up to."""
    return sum([part.share * part.score for part in parts.values()])


def stretched(scores: Sequence[float]) -> list[float]:
    """Return the scores scaled so that the lowest is 0 and the highest 1; all 1 where they are alike."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _ordered(pairs: Iterable[tuple[Id, float]]) -> list[tuple[Id, float]]:
    return sorted(pairs, key=lambda pair: (-pair[1], str(pair[0])))
