"""What the legs proposed, put together and fused. Plain Python over rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.knowledge.retrieval.fusion import Part, Scored, parts_of, reciprocal_rank_fusion, stretched, total
from apps.knowledge.retrieval.legs import DEPTH
from apps.knowledge.retrieval.passages import Passage, Trace
from apps.knowledge.retrieval.profiles import Profiles

Row = Mapping[str, Any]
# Bytes a character in UTF-8, by which scripts are told apart: Latin letters have 1, Chinese characters 3.
LATIN, CHINESE, CHINESE_QUESTION = 1.15, 1.8, 1.3
FULL = 0.5  # share of the question's words in one passage from which words count in full


@dataclass(slots=True)
class Candidate:
    """A passage on its way through the stages. ``row`` has its text from the stage "passages" on."""

    chunk_id: UUID
    knowledge_base_id: UUID
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)  # by leg, then by stage
    score: float = 0.0  # what orders it now
    parts: Mapping[str, Part] = field(default_factory=dict)  # of the fused score, by leg; none after fusion by ranks
    row: Row = field(default_factory=dict)
    lost_at: str = ""
    beyond: Mapping[str, Row] = field(default_factory=dict)  # by leg, of a watched passage: too far down to count

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
            place=row["place"],
            score=round(self.score, 6),
            ranks=self.ranks,
            rerank_score=None if rerank is None else round(rerank, 6),
            focus=row.get("focus"),
        )

    def trace(self) -> Trace:
        """Return how it fared."""
        ranks = {leg: int(row["rank"]) for leg, row in self.beyond.items()} | self.ranks
        scores = {leg: float(row["score"]) for leg, row in self.beyond.items()} | self.scores
        return Trace(self.chunk_id, ranks, {name: round(score, 6) for name, score in scores.items()}, self.lost_at)


Legs = Mapping[str, Sequence[Row]]


def too_far_down(outcome: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Row]:
    """Return the rows by leg that came only because their passage is watched: they must not change what is found."""
    return {row["leg"]: row for rows in outcome.values() for row in rows if row["rank"] > DEPTH}


def by_leg(outcome: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, list[Row]]:
    """Return the statements' rows by leg, best first, without those of ``too_far_down``.

    Vectors of several models are put in one order by ``even``, a scale that they share, since cosines of two models
    are not comparable; ``score`` stays the cosine.
    """
    near = {name: [row for row in rows if row["rank"] <= DEPTH] for name, rows in outcome.items()}
    groups = [rows for name, rows in near.items() if name.startswith("vector")]
    legs: dict[str, list[Row]] = {}
    if len(groups) > 1:
        for rows in groups:
            cosines = [row["score"] for row in rows]  # one alone is not the best of anything
            for row, score in zip(rows, stretched(cosines) if len(rows) > 1 else cosines, strict=True):
                row["even"] = score
    if groups:
        merged = sorted((row for rows in groups for row in rows), key=lambda row: -row.get("even", row["score"]))
        if len(groups) > 1:
            for rank, row in enumerate(merged, start=1):
                row["rank"] = rank
        legs["vector"] = list(merged)
    for row in near.get("lexical", ()):
        legs.setdefault(row["leg"], []).append(row)
    return legs


def coverage(legs: Legs) -> float:
    """Return the largest share of the question's words that one passage has, by their idf: 0 to 1."""
    return max((row["coverage"] or 0.0 for row in legs.get("lexical", ())), default=0.0)


def scarce(legs: Legs, terms: Collection[str]) -> frozenset[str]:
    """Return the question's terms that only a few passages have, or none; the first row of a leg names them."""
    rows = [row for name in ("lexical", "trigram") for row in legs.get(name, ())[:1]]
    named = [row["scarce"] for row in rows if row["scarce"] is not None]
    return frozenset(named[0] if named else terms)


def foreign(query: str, width: float) -> bool:
    """Whether a passage of that ``width`` is in another script than the question; a mixed one is not."""
    if len(query.encode()) > CHINESE_QUESTION * len(query):
        return width < LATIN
    return width > CHINESE


def fused(
    query: str,
    legs: Legs,
    profiles: Profiles,
    proposed: int,
    *,
    watched: UUID | None = None,
    beyond: Mapping[str, Row] | None = None,
) -> list[Candidate]:
    """Return the passages that the legs propose, best first, scored by their own base's weights.

    How much the words count at most is the share of the question that they cover, and of passages in another script
    they say nothing: that none of a Chinese question's words stands in an English passage is no evidence.

    Args:
        query: the question.
        legs: rows by leg.
        profiles: weights, and how to fuse.
        proposed: how many of its rows each leg proposes; the rest only lend their scores.
        watched: a passage that is traced although no leg proposed it; it comes last, lost at "legs".
        beyond: its rows that are ``too_far_down``; they change nothing but its trace.
    """
    candidates: dict[UUID, Candidate] = {}
    scored: dict[str, Scored[UUID]] = {}
    beyond_words = {row["chunk_id"] for rows in legs.values() for row in rows if foreign(query, row["width"])}
    tops = {"lexical": min(1.0, coverage(legs) / FULL)}
    for name, rows in legs.items():
        for row in rows:
            known = candidates.setdefault(row["chunk_id"], Candidate(row["chunk_id"], row["knowledge_base_id"]))
            known.ranks[name], known.scores[name] = int(row["rank"]), float(row["score"])
        scores = {row["chunk_id"]: float(row.get("even", row["score"])) for row in rows}
        complete = name != "vector" and len(rows) < DEPTH  # what has none of the words has no score, which is 0
        floor = 0.0 if complete else min(scores.values(), default=0.0)
        named = [row["chunk_id"] for row in rows if row["rank"] <= proposed]
        scored[name] = Scored(scores, named, floor, tops.get(name, 1.0), () if name == "vector" else beyond_words)
    _score(scored, candidates, profiles)
    proposals = {chunk_id for leg in scored.values() for chunk_id in leg.candidates}
    found = sorted((candidates[one] for one in proposals), key=lambda one: (-one.score, str(one.chunk_id)))
    for row in (beyond or {}).values():
        known = candidates.setdefault(row["chunk_id"], Candidate(row["chunk_id"], row["knowledge_base_id"]))
        known.beyond = beyond or {}
    if watched in candidates and watched not in proposals:
        candidates[watched].lost_at = "legs"
        found.append(candidates[watched])
    return found


def _score(scored: Mapping[str, Scored[UUID]], candidates: Mapping[UUID, Candidate], profiles: Profiles) -> None:
    """Fuse once for each set of weights, over all candidates, and take each passage's score by its own base's."""
    own = {base: profile.weights for base, profile in profiles.own.items()}
    for weights in {profiles.whole.weights, *own.values()}:
        shares = weights.model_dump()
        if profiles.whole.fusion == "rrf":
            ranked = reciprocal_rank_fusion({name: leg.candidates for name, leg in scored.items()}, weights=shares)
            scores, parts = dict(ranked), {}
        else:
            parts = parts_of(scored, weights=shares)
            scores = {chunk_id: total(each) for chunk_id, each in parts.items()}
        for chunk_id, score in scores.items():
            candidate = candidates[chunk_id]
            if profiles.of(candidate.knowledge_base_id).weights == weights:
                candidate.score = candidate.scores["fusion"] = score
                candidate.parts = parts.get(chunk_id, {})


def joined(first: Sequence[Candidate], others: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Fuse the lists of further questions with the first one's, by rank alone (K15).

    What the first question says of a passage stands; the others add the legs that it is missing. Ranks order them
    now, while ``scores["fusion"]`` stays what the question said that brought the passage: thresholds are about that.
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
        known[chunk_id].score = score
        known[chunk_id].parts = {}
    return [known[chunk_id] for chunk_id, _ in order]
