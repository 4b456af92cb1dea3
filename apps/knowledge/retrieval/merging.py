"""Auto-merging: where enough of a parent's children were hit, the parent is what is read. Pure."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from apps.knowledge.retrieval.candidates import Candidate, Row

FEWEST = 2  # children that must be hit, whatever their share


def merge(candidates: Sequence[Candidate], ancestors: Mapping[UUID, Row], *, share: float) -> list[Candidate]:
    """Replace children by their parent where ``share`` of them were hit: level by level, from the bottom up.

    A parent takes the score, ranks and scores of its best child, and so its place. The children are marked lost
    at "merging".

    Args:
        candidates: best first, each with its ``row``.
        ancestors: rows of parents and grandparents by id, with ``children``, how many each has.
        share: of a parent's children, 0 to 1; two must be hit in any case.
    """
    current = list(candidates)
    while True:
        groups: dict[UUID, list[Candidate]] = {}
        for candidate in current:
            parent = candidate.row.get("parent_id")
            if parent is not None and parent in ancestors:
                groups.setdefault(parent, []).append(candidate)
        full = {
            parent: hit
            for parent, hit in groups.items()
            if len(hit) >= FEWEST and len(hit) >= share * ancestors[parent]["children"]
        }
        if not full:
            return current
        merged: list[Candidate] = []
        for candidate in current:
            parent = candidate.row.get("parent_id")
            if parent not in full:
                merged.append(candidate)
                continue
            candidate.lost_at = "merging"
            if candidate is full[parent][0]:
                best, row = candidate, ancestors[parent]
                whole = Candidate(
                    parent, best.knowledge_base_id, dict(best.ranks), dict(best.scores), best.score, best.parts, row
                )
                merged.append(whole)
        current = merged
