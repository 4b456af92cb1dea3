"""Which statements a search runs, each with its time limit, and what became of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from psycopg.rows import DictRow

from apps.knowledge.index_text import lone_characters
from apps.knowledge.retrieval import legs
from apps.knowledge.retrieval.execution import Leg, Outcome
from apps.knowledge.retrieval.questions import Embedded
from apps.knowledge.retrieval.scope import Scope

VECTOR_TIMEOUT_MS, LEXICAL_TIMEOUT_MS, TRIGRAM_TIMEOUT_MS = 10_000, 5_000, 250


def plan(
    door: Scope,
    query: str,
    terms: Mapping[str, float],
    embedded: Embedded,
    bases: Sequence[DictRow],
    watched: UUID | None,
    few: int,
) -> dict[str, Leg]:
    """Return the legs by name: one for the vectors of each model, one for the words, where the question has any.

    Trigrams go with the words, which saves the door a second run. In a large base, one with an index of vectors, they
    are a leg of their own: the words alone may take longer there than trigrams may.

    ``few``: of how many passages a term is no longer scarce.
    """
    indexed = {base["id"]: base["dimensions"] for base in bases if base["indexed"]}
    planned = {}
    for number, group in enumerate(embedded.vectors):
        large = [base for base in group.bases if base in indexed]
        size = indexed[large[0]] if large else 0
        statement = legs.vector_leg(
            door, bases=group.bases, vector=group.vector, indexed=large, dimensions=size, watched=watched
        )
        exact = None
        if large:
            scan = legs.vector_leg(door, bases=group.bases, vector=group.vector, watched=watched)
            exact = Leg(scan, VECTOR_TIMEOUT_MS)
        planned[f"vector {number}"] = Leg(statement, VECTOR_TIMEOUT_MS, approximate=bool(large), exact=exact)
    ids = [base["id"] for base in bases]
    words = partial(
        legs.lexical_leg, door, bases=ids, terms=terms, lone=lone_characters(query), watched=watched, few=few
    )
    plain = Leg(words(), LEXICAL_TIMEOUT_MS) if terms else None
    if plain:
        planned["lexical"] = plain
    if legs.has_trigrams(query, terms):
        if plain and indexed:
            planned["trigram"] = Leg(words(terms={}, verbatim=query), TRIGRAM_TIMEOUT_MS)
        else:
            planned["lexical"] = Leg(words(verbatim=query), TRIGRAM_TIMEOUT_MS, fallback=plain)
    return planned


def degraded(embedded: Embedded, outcome: Outcome) -> set[str]:
    """Return the names of what failed while the rest answered."""
    failed = {name.partition(" ")[0] for name in outcome.failed}
    failed |= {"vector"} if embedded.failed else set()
    return failed | ({"trigram"} if outcome.fell_back else set())


def causes(embedded: Embedded, outcome: Outcome) -> dict[str, str]:
    """Return why parts failed, by their names: "embedding", or a leg."""
    found = {"embedding": embedded.failed[0]} if embedded.failed else {}
    return found | {name.partition(" ")[0]: cause for name, cause in outcome.failed.items()}


def leg_ms(leg: str, outcome: Outcome) -> float:
    """Return how long a leg took in the database."""
    if leg == "vector":
        return round(sum(ms for name, ms in outcome.ms.items() if name.startswith("vector")), 3)
    return round(outcome.ms.get(leg, outcome.ms.get("lexical", 0.0)), 3)
