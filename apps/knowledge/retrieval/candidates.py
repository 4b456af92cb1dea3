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
    for row in (row for name in ("lexical", "trigram") for row in near.get(name, ())):
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


def foreign(query: str, widths: Sequence[float]) -> list[bool]:
    """Whether passages of those ``widths`` are in another script than the question; mixed ones are not."""
    if len(query.encode()) > CHINESE_QUESTION * len(query):
        return [width < LATIN for width in widths]
    return [width > CHINESE for width in widths]


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
    places: dict[UUID, int] = {}  # an id's hash is made anew each time it is asked: numbers stand for them
    numbers = {name: [places.setdefault(row["chunk_id"], len(places)) for row in rows] for name, rows in legs.items()}
    scored: dict[str, Scored[int]] = {}
    mute: set[int] = set()
    tops = {"lexical": min(1.0, coverage(legs) / FULL)}
    for name, rows in legs.items():
        beyond_words = foreign(query, [row["width"] for row in rows])
        mute.update(number for number, is_foreign in zip(numbers[name], beyond_words, strict=True) if is_foreign)
        numbered = list(zip(numbers[name], rows, strict=True))
        scores = {number: float(row.get("even", row["score"])) for number, row in numbered}
        complete = name != "vector" and len(rows) < DEPTH  # what has none of the words has no score, which is 0
        floor = 0.0 if complete else min(scores.values(), default=0.0)
        named = [number for number, row in numbered if row["rank"] <= proposed]
        scored[name] = Scored(scores, named, floor, tops.get(name, 1.0), () if name == "vector" else mute)
    proposals = {number for leg in scored.values() for number in leg.candidates}
    traced = places.setdefault(watched, len(places)) if watched is not None else -1
    candidates: dict[int, Candidate] = {}
    for name, rows in legs.items():
        for number, row in zip(numbers[name], rows, strict=True):
            if number in proposals or number == traced:
                known = candidates.get(number)
                if known is None:
                    known = candidates[number] = Candidate(row["chunk_id"], row["knowledge_base_id"])
                known.ranks[name], known.scores[name] = int(row["rank"]), float(row["score"])
    _score(scored, candidates, profiles)
    found = sorted((candidates[one] for one in proposals), key=lambda one: (-one.score, str(one.chunk_id)))
    for row in (beyond or {}).values():
        if traced not in candidates:
            candidates[traced] = Candidate(row["chunk_id"], row["knowledge_base_id"])
        candidates[traced].beyond = beyond or {}
    if traced in candidates and traced not in proposals:
        candidates[traced].lost_at = "legs"
        found.append(candidates[traced])
    return found


def _score(scored: Mapping[str, Scored[int]], candidates: Mapping[int, Candidate], profiles: Profiles) -> None:
    """Fuse once for each set of weights, over all candidates, and take each passage's score by its own base's."""
    for weights in {profiles.whole.weights, *(profile.weights for profile in profiles.own.values())}:
        shares = weights.model_dump()
        if profiles.whole.fusion == "rrf":
            ranked = reciprocal_rank_fusion({name: leg.candidates for name, leg in scored.items()}, weights=shares)
            scores, parts = dict(ranked), {}
        else:
            parts = parts_of(scored, weights=shares)
            scores = {number: total(each) for number, each in parts.items()}
        for number, score in scores.items():
            candidate = candidates[number]
            if not profiles.own or profiles.of(candidate.knowledge_base_id).weights == weights:
                candidate.score = candidate.scores["fusion"] = score
                candidate.parts = parts.get(number, {})


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
