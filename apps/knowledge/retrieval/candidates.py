"""What the legs proposed, put together and fused. Plain Python over rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.knowledge.retrieval.fusion import Scored, convex_combination, reciprocal_rank_fusion, stretched
from apps.knowledge.retrieval.legs import DEPTH
from apps.knowledge.retrieval.passages import Passage, Trace
from apps.knowledge.retrieval.profiles import Profiles

Row = Mapping[str, Any]


@dataclass(slots=True)
class Candidate:
    """A passage on its way through the stages. ``row`` has its text from the stage "passages" on."""

    chunk_id: UUID
    knowledge_base_id: UUID
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)  # by leg, then by stage
    score: float = 0.0  # what orders it now
    row: Row = field(default_factory=dict)
    lost_at: str = ""

    def passage(self) -> Passage:
        """Return what leaves the search."""
        row, rerank = self.row, self.scores.get("rerank")
        return Passage(
            chunk_id=self.chunk_id,
            document_id=row["document_id"],
            knowledge_base_id=self.knowledge_base_id,
            document=row["document"],
            text=row["text"],
            heading=row["heading"],
            page=row["page"],
            page_end=row["page_end"],
            start=row["start"],
            end=row["end"],
            score=round(self.score, 6),
            ranks=self.ranks,
            rerank_score=None if rerank is None else round(rerank, 6),
        )

    def trace(self) -> Trace:
        """Return how it fared."""
        scores = {name: round(score, 6) for name, score in self.scores.items()}
        return Trace(self.chunk_id, self.ranks, scores, self.lost_at)


Legs = Mapping[str, Sequence[Row]]


def by_leg(outcome: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, list[Row]]:
    """Return the statements' rows by leg, best first.

    Vectors of several models come to one scale first, since cosines of two models are not comparable.
    """
    groups = [rows for name, rows in outcome.items() if name.startswith("vector")]
    legs: dict[str, list[Row]] = {}
    if len(groups) > 1:
        for rows in groups:
            for row, score in zip(rows, stretched([row["score"] for row in rows]), strict=True):
                row["score"] = score
    if groups:
        merged = sorted((row for rows in groups for row in rows), key=lambda row: -row["score"])
        if len(groups) > 1:
            for rank, row in enumerate(merged, start=1):
                row["rank"] = rank
        legs["vector"] = list(merged)
    for row in outcome.get("lexical", ()):
        legs.setdefault(row["leg"], []).append(row)
    return legs


def coverage(legs: Legs) -> float:
    """Return the largest share of the question's words that one passage has, by their idf: 0 to 1."""
    return max((row["coverage"] or 0.0 for row in legs.get("lexical", ()) if row["rank"] <= DEPTH), default=0.0)


def fused(legs: Legs, profiles: Profiles, proposed: int, *, watched: UUID | None = None) -> list[Candidate]:
    """Return the passages that the legs propose, best first, scored by their own base's weights.

    Args:
        legs: rows by leg.
        profiles: weights, and how to fuse.
        proposed: how many of its rows each leg proposes; the rest only lend their scores.
        watched: a passage that is traced although no leg proposed it; it comes last, lost at "legs".
    """
    candidates: dict[UUID, Candidate] = {}
    scored: dict[str, Scored[UUID]] = {}
    for name, rows in legs.items():
        for row in rows:
            known = candidates.setdefault(row["chunk_id"], Candidate(row["chunk_id"], row["knowledge_base_id"]))
            known.ranks[name], known.scores[name] = int(row["rank"]), float(row["score"])
        scores = {row["chunk_id"]: float(row["score"]) for row in rows}
        complete = name != "vector" and len(rows) < DEPTH  # what has none of the words has no score, which is 0
        floor = 0.0 if complete else min(scores.values(), default=0.0)
        scored[name] = Scored(scores, [row["chunk_id"] for row in rows if row["rank"] <= proposed], floor)
    order = _order(scored, candidates, profiles)
    found = []
    for chunk_id, score in order:
        candidate = candidates[chunk_id]
        candidate.score = candidate.scores["fusion"] = score
        found.append(candidate)
    if watched in candidates and candidates[watched] not in found:
        candidates[watched].lost_at = "legs"
        found.append(candidates[watched])
    return found


def _order(
    scored: Mapping[str, Scored[UUID]], candidates: Mapping[UUID, Candidate], profiles: Profiles
) -> list[tuple[UUID, float]]:
    """Fuse once for each set of weights, over all candidates, and take each passage's score by its own base's."""

    def by(weights: Mapping[str, float]) -> list[tuple[UUID, float]]:
        if profiles.whole.fusion == "rrf":
            return reciprocal_rank_fusion({name: leg.candidates for name, leg in scored.items()}, weights=weights)
        return convex_combination(scored, weights=weights)

    own = {base: profile.weights for base, profile in profiles.own.items()}
    if not own:
        return by(profiles.whole.weights.model_dump())
    scores = {weights: dict(by(weights.model_dump())) for weights in set(own.values())}
    union = next(iter(scores.values()))
    pairs = [
        (chunk_id, scores[profiles.of(candidates[chunk_id].knowledge_base_id).weights][chunk_id]) for chunk_id in union
    ]
    return sorted(pairs, key=lambda pair: (-pair[1], str(pair[0])))


def joined(first: Sequence[Candidate], others: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Fuse the lists of further questions with the first one's, by rank alone (K15).

    What the first question says of a passage stands; the others add the legs that it is missing.
    """
    lists = [first, *others]
    known: dict[UUID, Candidate] = {}
    for found in lists:
        for candidate in found:
            there = known.setdefault(candidate.chunk_id, candidate)
            there.ranks = candidate.ranks | there.ranks
            there.scores = candidate.scores | there.scores
    rankings = {str(number): [candidate.chunk_id for candidate in found] for number, found in enumerate(lists)}
    order = reciprocal_rank_fusion(rankings)
    for chunk_id, score in order:
        known[chunk_id].score = known[chunk_id].scores["fusion"] = score
    return [known[chunk_id] for chunk_id, _ in order]
