"""``make bench-large``: a million chunks, once; prints figures for docs/retrieval.md, judges nothing by itself.

How quickly and how well an index of a million vectors answers, how much disk it all takes, and whether a small tenant
notices that others have a million.
"""

import asyncio
import os
import sys
from time import perf_counter
from typing import Any

from benchmarks.bench_search import Times, _closing, recall, times
from benchmarks.search_world import World, fill, scratch_database

SMALL = 5_000
QUESTIONS = 40
SIZES = {"100,000": 100_000, "1,000,000": 1_000_000}
TABLES = ("knowledge_chunk", "knowledge_chunkvector", "knowledge_posting", "knowledge_passagetokens")


def disk(name: str) -> dict[str, str]:
    """Return what tables and indexes of vectors take."""
    from django.db import connection

    with connection.cursor() as cursor:
        found = {}
        for table in TABLES:
            cursor.execute("SELECT pg_size_pretty(pg_total_relation_size(%s))", [table])
            found[table] = cursor.fetchone()[0]
        cursor.execute("SELECT sum(pg_relation_size(oid)) / 1048576 FROM pg_class WHERE relname LIKE 'vectors\\_%'")
        found["indexes of vectors"] = f"{cursor.fetchone()[0] or 0:.0f} MB"
    return {f"{name}: {table}": size for table, size in found.items()}


def measured(world: World, place: int) -> Times:
    """Return what searches take in one tenant's base; characters as they stand may be looked for too long."""
    return asyncio.run(_closing(times(world, place, may_lose=["trigram"])))


def main() -> None:
    """Measure and print."""
    from apps.knowledge.retrieval import vector_indexes

    vector_indexes.MEMORY = "3GB"
    small = {}
    for name, size in SIZES.items():
        with scratch_database("bench_large"):
            began = perf_counter()
            world: Any = fill([size, SMALL], questions=QUESTIONS, words=12, signs=480)
            say(f"{name}: written in {perf_counter() - began:.0f} s")
            began = perf_counter()
            vector_indexes.maintain()
            say(f"{name}: index built in {perf_counter() - began:.0f} s")
            large = measured(world, 0)
            say(f"{name}: p50 of the large tenant {large.whole:.1f} ms, of that SQL {large.sql:.1f} ms")
            say(f"{name}: floor {large.by_hand:.1f} ms, ratio of the SQL {large.sql / large.by_hand:.2f}")
            lost = sum(bool(took.degraded) for took in large.ours)
            say(f"{name}: {lost} of {len(large.ours)} searches without characters as they stand")
            say(f"{name}: recall@10 of the index {asyncio.run(_closing(recall(world, 0))):.4f}")
            small[name] = measured(world, 1).whole
            say(f"{name}: p50 of the small tenant {small[name]:.1f} ms")
            for table, bytes_ in disk(name).items():
                say(f"{table} {bytes_}")
    first, last = small.values()
    say(f"growth for the small tenant: {last / first:.2f}")


def say(line: str) -> None:
    """Print at once."""
    print(line, flush=True)


if __name__ == "__main__":
    import django

    from knowsphere import postgres

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
    postgres.hold()
    django.setup()
    sys.exit(main())
