"""Search: from a question to passages. The tool, the command, the API and evaluations all call it.

which of the bases may be read, and by which model each is embedded
→ the question embedded, once a model
→ one round trip: the vector leg (one a model) and the lexical leg, each behind the door
→ fusion → the best passages, whole
"""

import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from uuid import UUID

import psycopg
from django.conf import settings
from django.utils.translation import gettext_lazy as _
from psycopg.rows import DictRow

from apps.common.database import pool
from apps.common.errors import InvalidInput, KnowSphereError
from apps.common.text import storable
from apps.knowledge.index_text import query_terms
from apps.knowledge.retrieval.execution import Leg, Outcome, run_legs
from apps.knowledge.retrieval.fusion import Scored, convex_combination, stretched
from apps.knowledge.retrieval.legs import DEPTH, bases_statement, has_trigrams, lexical_leg, vector_leg
from apps.knowledge.retrieval.passages import Passage, SearchResult, Stage
from apps.knowledge.retrieval.questions import Embedded, embed_question
from apps.knowledge.retrieval.scope import readable_bases, readable_documents
from apps.models.accounting import Caller, charged_to, current
from apps.workspaces.principals import Who

logger = logging.getLogger(__name__)

# Shares of the legs' scores: the best of those measured, docs/decisions/fusion.md.
WEIGHTS: Mapping[str, float] = {"vector": 0.65, "lexical": 0.35, "trigram": 0.175}
CANDIDATES_PER_HIT, FEWEST_CANDIDATES, MOST_CANDIDATES = 4, 30, 200
LONGEST_QUERY = 4000  # characters; of a page pasted as a question the rest is not looked at
VECTOR_TIMEOUT_MS, LEXICAL_TIMEOUT_MS, TRIGRAM_TIMEOUT_MS = 10_000, 5_000, 250


class SearchUnavailable(KnowSphereError):
    """Every leg of a search failed, so nothing is known: that is not the same as nothing found."""

    code = "search_unavailable"
    status = 503
    retryable = True
    user_message = _("The knowledge bases cannot be searched at the moment. Nothing is lost; try again soon.")


async def search(
    user: Who,
    query: str,
    *,
    knowledge_bases: Sequence[UUID],
    top_k: int = 8,
    rerank: bool = True,
) -> SearchResult:
    """Find the passages of the selected bases that answer ``query``: the best first, at most ``top_k``.

    Only documents that ``user`` may read at this moment are looked at; a base that they may not read
    counts as absent. When a leg fails the others answer, and ``degraded`` names it. Three SQL
    statements in two round trips while all bases share an embedding model, one more for each other.

    Args:
        user: the person for whom to search.
        query: a question or keywords.
        knowledge_bases: where to look; this narrows what ``user`` may read, and can't widen it.
        top_k: how many passages, from 1.
        rerank: let a reranker order the candidates, where one is configured.

    Raises:
        InvalidInput: the query is blank, or ``top_k`` below 1.
        SearchUnavailable: the database does not answer, or every leg failed.
    """
    query = " ".join(storable(query).split())[:LONGEST_QUERY]
    if not query:
        raise InvalidInput(field="query", reason=_("it is empty"))
    if top_k < 1:
        raise InvalidInput(field="top_k", reason=_("it must be at least 1"))
    try:
        return await _search(user, query, list(knowledge_bases), top_k)
    except (psycopg.Error, OSError) as error:
        logger.warning("a search could not run", exc_info=error)
        raise SearchUnavailable from error


async def _search(user: Who, query: str, selected: list[UUID], top_k: int) -> SearchResult:
    began = perf_counter()
    connections = await pool()
    async with connections.connection() as connection:
        cursor = await connection.execute(*bases_statement(readable_bases(user), selected))
        readable = await cursor.fetchall()
    stages = [Stage("bases", _ms(began), len(selected), len(readable))]
    if not readable:
        return SearchResult((), tuple(stages), empty_reason="no_base")
    if not any(base["embedding_model"] for base in readable):
        return SearchResult((), tuple(stages), empty_reason="nothing_indexed")
    began = perf_counter()
    with charged_to(current() or Caller(readable[0]["workspace_id"], user.pk)):
        embedded = await embed_question(query, readable)
    stages.append(Stage("embed", _ms(began), len(embedded.vectors) + embedded.failed, len(embedded.vectors)))

    terms = query_terms(query)
    candidates = candidate_count(top_k)
    plan = _plan(user, query, terms, embedded, [base["id"] for base in readable], candidates)
    async with connections.connection() as connection:
        outcome = await run_legs(connection, plan)
    degraded = _degraded(embedded, outcome)
    if degraded and not outcome.rows:
        raise SearchUnavailable
    legs = _by_leg(outcome)
    stages += [Stage(name, _leg_ms(name, outcome), len(terms) or 1, len(rows)) for name, rows in legs.items()]

    began = perf_counter()
    found, passages = _fused(legs, candidates, top_k)
    stages.append(Stage("fusion", _ms(began), found, len(passages)))
    reason = "" if passages else "nothing_indexed" if "vector" in legs else "no_match"
    return SearchResult(passages, tuple(stages), degraded, reason)


def candidate_count(top_k: int) -> int:
    """Return how many passages each leg brings in full: the setting, else a few for each one wanted."""
    wanted: int = getattr(settings, "RETRIEVAL_CANDIDATE_K", 0) or max(FEWEST_CANDIDATES, top_k * CANDIDATES_PER_HIT)
    return min(max(wanted, top_k), max(MOST_CANDIDATES, top_k), DEPTH)


def _plan(
    user: Who,
    query: str,
    terms: Mapping[str, float],
    embedded: Embedded,
    bases: list[UUID],
    candidates: int,
) -> dict[str, Leg]:
    door = readable_documents(user)
    plan = {
        f"vector {number}": Leg(
            vector_leg(door, bases=group.bases, vector=group.vector, candidates=candidates), VECTOR_TIMEOUT_MS
        )
        for number, group in enumerate(embedded.vectors)
    }
    words = lexical_leg(door, bases=bases, terms=terms, candidates=candidates) if terms else None
    plain = Leg(words, LEXICAL_TIMEOUT_MS) if words else None
    if has_trigrams(query, terms):
        both = lexical_leg(door, bases=bases, terms=terms, candidates=candidates, verbatim=query)
        plan["lexical"] = Leg(both, TRIGRAM_TIMEOUT_MS, fallback=plain)
    elif plain:
        plan["lexical"] = plain
    return plan


def _degraded(embedded: Embedded, outcome: Outcome) -> tuple[str, ...]:
    failed = {name.partition(" ")[0] for name in outcome.failed}
    failed |= {"vector"} if embedded.failed else set()
    failed |= {"trigram"} if outcome.fell_back else set()
    return tuple(sorted(failed))


def _by_leg(outcome: Outcome) -> dict[str, list[DictRow]]:
    """Return the rows by leg, best first; vectors of several models on one scale, since cosines of two are not."""
    groups = [rows for name, rows in outcome.rows.items() if name.startswith("vector")]
    legs: dict[str, list[DictRow]] = {}
    if len(groups) > 1:
        for rows in groups:
            for row, score in zip(rows, stretched([row["score"] for row in rows]), strict=True):
                row["score"] = score
    if groups:
        legs["vector"] = sorted((row for rows in groups for row in rows), key=lambda row: -row["score"])
    for row in outcome.rows.get("lexical", ()):
        legs.setdefault(row["leg"], []).append(row)
    return legs


def _fused(legs: Mapping[str, list[DictRow]], candidates: int, top_k: int) -> tuple[int, tuple[Passage, ...]]:
    """Return how many passages were candidates, and the best ``top_k`` of them."""
    scored: dict[str, Scored[UUID]] = {}
    rows: dict[UUID, DictRow] = {}
    ranks: dict[UUID, dict[str, int]] = {}
    for name, found in legs.items():
        listed = [row for row in found if row["document_id"] is not None][:candidates]
        scores = {row["chunk_id"]: float(row["score"]) for row in found}
        complete = name != "vector" and len(found) < DEPTH  # what has none of the words has no score, which is 0
        floor = 0.0 if complete else min(scores.values(), default=0.0)
        scored[name] = Scored(scores, [row["chunk_id"] for row in listed], floor)
        rows.update((row["chunk_id"], row) for row in listed)
        for rank, row in enumerate(found, start=1):
            ranks.setdefault(row["chunk_id"], {})[name] = rank
    fused = convex_combination(scored, weights=WEIGHTS)
    return len(fused), tuple(_passage(rows[chunk_id], score, ranks[chunk_id]) for chunk_id, score in fused[:top_k])


def _passage(row: DictRow, score: float, ranks: dict[str, int]) -> Passage:
    return Passage(
        chunk_id=row["chunk_id"],
        document_id=row["document_id"],
        knowledge_base_id=row["knowledge_base_id"],
        document=row["document"],
        text=row["text"],
        heading=row["heading"],
        page=row["page"],
        page_end=row["page_end"],
        start=row["start"],
        end=row["end"],
        score=round(score, 6),
        ranks=ranks,
    )


def _leg_ms(leg: str, outcome: Outcome) -> float:
    if leg == "vector":
        return round(sum(ms for name, ms in outcome.ms.items() if name.startswith("vector")), 3)
    return round(outcome.ms.get("lexical", 0.0), 3)


def _ms(began: float) -> float:
    return round((perf_counter() - began) * 1000, 3)
