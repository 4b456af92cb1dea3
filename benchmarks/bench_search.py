"""Search against the same legs in hand-written SQL, in bases of 10,000 and 100,000 chunks, one tenant and a thousand.

``python -m benchmarks search`` prints ratios; ``python -m benchmarks.bench_search --explain`` the plans too. Peers are
measured where their packages can be installed (``benchmarks/search_peers.py``).
"""

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from unittest.mock import patch

from benchmarks import search_floor, search_peers
from benchmarks.report import Ratio
from benchmarks.search_world import DIMENSIONS, World, as_text, fill, scratch_database, skewed

QUESTIONS, WARM = 60, 5
PAIRS = 200
SQL_BAR, WHOLE_BAR, FILTER_BAR = 1.5, 2.5, 1.1
RECALL = 0.99  # of an index, at 10


@dataclass(frozen=True, slots=True)
class Took:
    """Milliseconds of one search without the embedding of its question: all of it, and of that in SQL."""

    whole: float
    sql: float
    degraded: frozenset[str]


@dataclass(slots=True)
class Times:
    """What searches took, and the same legs by hand, question by question."""

    ours: list[Took] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)

    @property
    def whole(self) -> float:
        """The median of our searches."""
        return statistics.median(took.whole for took in self.ours)

    @property
    def sql(self) -> float:
        """The median of what our searches spend in SQL."""
        return statistics.median(took.sql for took in self.ours)

    @property
    def by_hand(self) -> float:
        """The median of the floor."""
        return statistics.median(self.floor)


async def times(world: World, place: int, *, explain: bool = False, may_lose: Collection[str] = ()) -> Times:
    """Return what each question takes in one tenant's base: ours, and the floor's.

    ``may_lose``: the legs that may run out of their time.
    """
    base, found = world.bases[place], Times()
    passages = await _scalar("SELECT sum(chunk_count) FROM knowledge_document WHERE knowledge_base_id = %s", base.pk)
    indexed = await _scalar("SELECT count(*) FROM pg_class WHERE relname LIKE %s", f"vectors_{base.pk.hex}%")
    turns = list(enumerate(world.questions))
    for number, question in turns[:WARM] + turns:
        vector = as_text(world.vectors[number])
        found.floor.append(await _by_hand(base, question, vector, float(passages or 1), bool(indexed)))
        found.ours.append(await _ours(world, base, question, vector, may_lose))
    if explain:
        await explained(world, base)
    return Times(found.ours[WARM:], found.floor[WARM:])


async def _ours(world: World, base: Any, question: str, vector: str, may_lose: Collection[str] = ()) -> Took:
    """Time a search whose question's vector is at hand: the model is not what is measured here."""
    from apps.knowledge.retrieval import search as module
    from apps.knowledge.retrieval.questions import Embedded, Group
    from apps.knowledge.retrieval.search import search

    async def embedded(query: str, bases: Any) -> Embedded:
        return Embedded([Group([base.pk], vector)])

    spent: list[float] = []
    with (
        patch.object(module, "embed_question", embedded),
        patch.object(module, "fetch", _timed(module.fetch, spent)),
        patch.object(module, "run_legs", _timed(module.run_legs, spent)),
        patch("apps.models.gateway.token_scores", _no_scores),
    ):
        began = perf_counter()
        result = await search(world.person, question, knowledge_bases=[base.pk])
        took = (perf_counter() - began) * 1000
    if not result.passages or set(result.degraded) - set(may_lose):
        raise RuntimeError(f"a search went wrong: {result.degraded} {result.stages}")
    return Took(took, sum(spent), frozenset(result.degraded))


def _timed(run: Callable[..., Awaitable[Any]], spent: list[float]) -> Callable[..., Awaitable[Any]]:
    async def timed(*args: Any, **kwargs: Any) -> Any:
        began = perf_counter()
        try:
            return await run(*args, **kwargs)
        finally:
            spent.append((perf_counter() - began) * 1000)

    return timed


async def _no_scores(query: str, passages: list[bytes]) -> list[None]:
    return [None] * len(passages)


async def _by_hand(base: Any, question: str, vector: str, passages: float, indexed: bool) -> float:
    from apps.common.database import pool
    from apps.knowledge.index_text import query_terms
    from apps.knowledge.retrieval.legs import has_trigrams

    terms = query_terms(question)
    asked = {"vector": vector, "base": base.pk, "terms": list(terms), "passages": passages, "query": question}
    legs = [search_floor.VECTOR, search_floor.BM25]
    if indexed:
        legs[0] = search_floor.INDEXED.format(base=base.pk, dimensions=DIMENSIONS)
    if has_trigrams(question, terms):
        legs.append(search_floor.TRIGRAM)
    async with (await pool()).connection() as connection:
        began = perf_counter()
        async with connection.pipeline():
            if indexed:
                await connection.execute("SELECT set_config('hnsw.ef_search', '400', true)")
            cursors = [await connection.execute(sql, asked) for sql in legs]
            found = [row["chunk_id"] for cursor in cursors for row in (await cursor.fetchall())[:15]]
        cursor = await connection.execute(search_floor.PASSAGES_AND_TOKENS, {"chunks": found[:30]})
        await cursor.fetchall()
        return (perf_counter() - began) * 1000


async def _scalar(sql: str, *parameters: Any) -> Any:
    from apps.common.database import pool

    async with (await pool()).connection() as connection:
        row = await (await connection.execute(sql, parameters)).fetchone()
    return next(iter(row.values())) if row else None


async def door_times(world: World, place: int) -> tuple[float, float]:
    """Return the medians of a search behind the door and of one without, of PAIRS interleaved pairs."""
    from apps.knowledge.retrieval import search as module
    from apps.knowledge.retrieval.scope import Scope

    base = world.bases[place]
    open_door = Scope("SELECT id, knowledge_base_id, name, chunk_count FROM knowledge_document", {})
    every_base = (
        "SELECT id, workspace_id, embedding_model, dimensions, NULL AS profile, FALSE AS reranker, FALSE AS synonyms"
    )
    open_bases = Scope(f"{every_base} FROM knowledge_knowledgebase", {})
    behind, free = [], []
    for pair in range(PAIRS + WARM):
        number = pair % len(world.questions)
        question, vector = world.questions[number], as_text(world.vectors[number])
        behind.append((await _ours(world, base, question, vector)).whole)
        with (
            patch.object(module, "readable_documents", lambda user, filters=(): open_door),
            patch.object(module, "readable_bases", lambda user: open_bases),
        ):
            free.append((await _ours(world, base, question, vector)).whole)
    return statistics.median(behind[WARM:]), statistics.median(free[WARM:])


async def recall(world: World, place: int) -> float:
    """Return how many of the ten passages that an exact scan puts first the index finds too."""
    from apps.common.database import pool
    from apps.knowledge.retrieval.execution import Leg, run_legs
    from apps.knowledge.retrieval.legs import vector_leg
    from apps.knowledge.retrieval.scope import readable_documents

    base, shares = world.bases[place], []
    for vector in map(as_text, world.vectors):
        found = []
        for indexed in ((), (base.pk,)):
            statement = vector_leg(
                readable_documents(world.person), bases=[base.pk], vector=vector, indexed=indexed, dimensions=DIMENSIONS
            )
            async with (await pool()).connection() as connection:
                outcome = await run_legs(connection, {"vector": Leg(statement, 60_000, approximate=bool(indexed))})
            found.append({row["chunk_id"] for row in outcome.rows["vector"][:10]})
        shares.append(len(found[0] & found[1]) / len(found[0]))
    return statistics.mean(shares)


async def explained(world: World, base: Any) -> None:
    """Print how PostgreSQL runs the product's own statements, and the floor's."""
    from apps.common.database import pool
    from apps.knowledge.index_text import query_terms
    from apps.knowledge.retrieval.legs import bases_statement, lexical_leg, vector_leg
    from apps.knowledge.retrieval.scope import readable_bases, readable_documents

    door, question = readable_documents(world.person), world.questions[0]
    vector, terms = as_text(world.vectors[0]), query_terms(question)
    asked = {"vector": vector, "base": base.pk, "terms": list(terms), "passages": 1000.0, "query": question}
    statements = [
        bases_statement(readable_bases(world.person), [base.pk]),
        vector_leg(door, bases=[base.pk], vector=vector),
        lexical_leg(door, bases=[base.pk], terms=terms, verbatim=question),
        (search_floor.VECTOR, asked),
        (search_floor.BM25, asked),
        (search_floor.TRIGRAM, asked),
    ]
    async with (await pool()).connection() as connection:
        for sql, parameters in statements:
            cursor = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", parameters)
            print(*(next(iter(row.values())) for row in await cursor.fetchall()), "", sep="\n", file=sys.stderr)


async def _closing(work: Any) -> Any:
    from apps.common.database import close_pool

    try:
        return await work
    finally:
        await close_pool()


def compare(name: str, world: World, place: int) -> tuple[Times, list[Ratio]]:
    """Return what one tenant's searches took, and the ratios of medians: of the SQL, and of the whole beside it."""
    found = asyncio.run(_closing(times(world, place, explain="--explain" in sys.argv)))
    judged = Ratio(f"SQL of a search, p50, {name}", found.sql, found.by_hand, "ms", SQL_BAR)
    return found, [judged, Ratio(f"all of it, p50, {name}", found.whole, found.by_hand, "ms", WHOLE_BAR)]


def run() -> list[Ratio]:
    """Compare and return the ratios."""
    from apps.knowledge.retrieval import vector_indexes

    ratios = []
    with scratch_database("bench_search"):
        world = fill([10_000], questions=QUESTIONS)
        found, judged = compare("10,000 chunks, 1 tenant", world, 0)
        ratios += judged
        for peer, (ms, bar) in search_peers.measure(world, QUESTIONS).items():
            ratios.append(Ratio(f"search p50, 10,000 chunks, against {peer}", found.whole, ms, "ms", bar))
    with scratch_database("bench_search"):
        world = fill(skewed(100_000, 1_000), questions=QUESTIONS)
        middle = 10
        found, judged = compare("100,000 chunks, 1,000 tenants, the tenth", world, middle)
        ratios += judged
        for name, place in {"the largest": 0, "the tenth": middle}.items():
            behind, free = asyncio.run(_closing(door_times(world, place)))
            ratios.append(Ratio(f"the door, {name} of 1,000 tenants, against none", behind, free, "ms", FILTER_BAR))
        for peer, (ms, bar) in search_peers.measure(world, QUESTIONS, place=middle).items():
            ratios.append(
                Ratio(f"all of it, p50, the tenth of 1,000 tenants, against {peer}", found.whole, ms, "ms", bar)
            )
    with scratch_database("bench_search"):
        world = fill([100_000], questions=QUESTIONS)
        vector_indexes.maintain()
        ratios += compare("100,000 chunks, 1 tenant, indexed", world, 0)[1]
        share = asyncio.run(_closing(recall(world, 0)))
        ratios.append(Ratio("passages missed by the index, of the ten nearest", 1 - share, 1 - RECALL, "share", 1.0))
    return ratios


if __name__ == "__main__":
    import os

    import django

    from knowsphere import postgres

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
    postgres.hold()
    django.setup()
    print(*run(), sep="\n")
