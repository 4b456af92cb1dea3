"""Search against the same legs in hand-written SQL, in bases of 10,000 and 100,000 chunks, one tenant and a thousand.

``python -m benchmarks search`` prints ratios; ``python -m benchmarks.bench_search --explain`` the plans too. Peers are
measured where their packages can be installed (``benchmarks/search_peers.py``).
"""

import asyncio
import statistics
import sys
from time import perf_counter
from typing import Any
from unittest.mock import patch

from benchmarks import search_floor, search_peers
from benchmarks.report import Ratio
from benchmarks.search_world import DIMENSIONS, World, as_text, fill, scratch_database, skewed

QUESTIONS, WARM = 60, 5
PAIRS = 200
SQL_BAR, FILTER_BAR, PEER_BAR, SLOW_PEER_BAR = 1.5, 1.1, 0.5, 0.1
RECALL = 0.99  # of an index, at 10


async def times(world: World, place: int, *, explain: bool = False) -> tuple[list[float], list[float]]:
    """Return milliseconds of each question in one tenant's base: ours without the embedding, and the floor's."""
    base, ours, floor = world.bases[place], [], []
    passages = await _scalar("SELECT sum(chunk_count) FROM knowledge_document WHERE knowledge_base_id = %s", base.pk)
    indexed = await _scalar("SELECT count(*) FROM pg_class WHERE relname LIKE %s", f"vectors_{base.pk.hex}%")
    turns = list(enumerate(world.questions))
    for number, question in turns[:WARM] + turns:
        vector = as_text(world.vectors[number])
        floor.append(await _by_hand(base, question, vector, float(passages or 1), bool(indexed)))
        ours.append(await _ours(world, base, question, vector))
    if explain:
        await explained(world, base)
    return ours[WARM:], floor[WARM:]


async def _ours(world: World, base: Any, question: str, vector: str) -> float:
    """Time a search whose question's vector is at hand: the model is not what is measured here."""
    from apps.knowledge.retrieval.questions import Embedded, Group
    from apps.knowledge.retrieval.search import search

    async def embedded(query: str, bases: Any) -> Embedded:
        return Embedded([Group([base.pk], vector)])

    with (
        patch("apps.knowledge.retrieval.search.embed_question", embedded),
        patch("apps.models.gateway.token_scores", _no_scores),
    ):
        began = perf_counter()
        result = await search(world.person, question, knowledge_bases=[base.pk])
        took = (perf_counter() - began) * 1000
    if not result.passages or result.degraded:
        raise RuntimeError(f"a search went wrong: {result.degraded} {result.stages}")
    return took


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
    began = perf_counter()
    async with (await pool()).connection() as connection:
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
        behind.append(await _ours(world, base, question, vector))
        with (
            patch.object(module, "readable_documents", lambda user, filters=(): open_door),
            patch.object(module, "readable_bases", lambda user: open_bases),
        ):
            free.append(await _ours(world, base, question, vector))
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


def compare(name: str, world: World, place: int) -> Ratio:
    """Return the ratio of medians of one tenant's base."""
    ours, floor = asyncio.run(_closing(times(world, place, explain="--explain" in sys.argv)))
    return Ratio(name, statistics.median(ours), statistics.median(floor), "ms", SQL_BAR)


def run() -> list[Ratio]:
    """Compare and return the ratios."""
    from apps.knowledge.retrieval import vector_indexes

    ratios = []
    with scratch_database("bench_search"):
        world = fill([10_000], questions=QUESTIONS)
        small = compare("search p50, 10,000 chunks, 1 tenant", world, 0)
        ratios.append(small)
        for peer, (ms, bar) in search_peers.measure(world, QUESTIONS).items():
            ratios.append(Ratio(f"search p50, 10,000 chunks, against {peer}", small.ours, ms, "ms", bar))
    with scratch_database("bench_search"):
        world = fill(skewed(100_000, 1_000), questions=QUESTIONS)
        middle = 10
        ratios.append(compare("search p50, 100,000 chunks, 1,000 tenants, the tenth", world, middle))
        behind, free = asyncio.run(_closing(door_times(world, middle)))
        ratios.append(Ratio("the door, 1,000 tenants, against none", behind, free, "ms", FILTER_BAR))
    with scratch_database("bench_search"):
        world = fill([100_000], questions=QUESTIONS)
        vector_indexes.maintain()
        ratios.append(compare("search p50, 100,000 chunks, 1 tenant, indexed", world, 0))
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
