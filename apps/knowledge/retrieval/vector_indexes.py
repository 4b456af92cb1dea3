"""Indexes of vectors, one for each large base: built beside the traffic, dropped when they are no longer wanted.

Below LARGE vectors an exact scan is quick enough and misses nothing. One index over all bases would be a trap: under a
tenant's filter it returns too little of what it should (docs/retrieval.md). A base's name for its index holds
its id and dimensions, and the catalogue says whether it is whole, so there is no state of ours to go stale.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from apps.common.database import run
from apps.knowledge.retrieval.legs import INDEX_PREFIX

logger = logging.getLogger(__name__)

LARGE = 20_000  # vectors of a base from which an index pays; measured, docs/retrieval.md
SMALL = LARGE // 2  # below this an index is dropped again
MOST_DIMENSIONS = 4_000  # that an index of half-precision vectors can have; above, the scan stays exact
LINKS, EFFORT = 16, 128  # of HNSW: neighbours of a node, candidates while building
MEMORY = "512MB"  # for building: about 400,000 vectors of 384 dimensions; a larger graph is built on disk, slowly
MANY = 1_000  # vectors of one document, and
QUEUE = 50  # documents of one base that wait: more than an index is worth keeping for, if they are
SHARE = 10  # at least a tenth of what is in it: writing those in costs about as much as building it anew
OF_A_DOCUMENT = 20  # vectors, roughly
LOCK = 0x766563746F72  # advisory: one builder at a time in the whole database


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one round did: names of indexes."""

    built: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def index_name(base_id: UUID, dimensions: int) -> str:
    """Return the name by which a search knows a base's index."""
    return f"{INDEX_PREFIX}{base_id.hex}_{dimensions}"


def maintain(*, large: int = LARGE, small: int = SMALL) -> Outcome:
    """Build what is missing, drop what is broken or no longer wanted. One round at a time; others return at once.

    Building does not stop writes (CONCURRENTLY), and so cannot be in a transaction: a killed round leaves an
    index that is not valid, which no search uses and the next round drops.
    """
    with _alone() as mine:
        if not mine:
            return Outcome()
        there = _existing()
        kept = _wanted(small)
        waiting = _waiting()
        wanted = {
            name: (base, dimensions)
            for name, (base, dimensions, size) in _wanted(large).items()
            if not _is_rush(waiting.get(base, 0), size)
        }
        stale = [name for name, valid in there.items() if not valid or name not in kept]
        for name in stale:
            _run(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
        missing = [name for name in wanted if name not in there or name in stale]
        for name in missing:
            _build(name, *wanted[name])
        return Outcome(tuple(missing), tuple(stale))


def set_aside(base_id: UUID, dimensions: int, incoming: int) -> bool:
    """Drop a base's index before many vectors come in: into an index they go at a few hundred a second.

    Many are ``incoming`` ones of a document, or a long queue of the base, measured by what is there. Until
    ``maintain`` builds the index again, beside the traffic, the base is scanned exactly. Not in a transaction; True
    if there was one to drop.
    """
    size = _size(index_name(base_id, dimensions))
    if size is None:
        return False
    if incoming < max(MANY, size / SHARE) and not _is_rush(_waiting(base_id).get(base_id, 0), size):
        return False
    with without(base_id, dimensions) as mine:
        return mine


@contextmanager
def without(base_id: UUID, dimensions: int) -> Iterator[bool]:
    """Drop a base's index and let nobody build it meanwhile. False where another round is at work: it may be there."""
    with _alone() as mine:
        name = index_name(base_id, dimensions)
        if mine and _size(name) is not None:
            _run(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
        yield mine


def _size(name: str) -> float | None:
    """Return about how many vectors an index has, None where there is no such index."""
    found = run("SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = to_regclass(%s)", [name])
    return next((float(size) for (size,) in found), None)


def _is_rush(waiting: int, size: float) -> bool:
    return waiting >= QUEUE and waiting * OF_A_DOCUMENT >= size / SHARE


def _waiting(base_id: UUID | None = None) -> dict[UUID, int]:
    """Return how many documents wait to be searchable, by base; of one base if it is given."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT knowledge_base_id, count(*) FROM knowledge_document
               WHERE status IN ('uploaded', 'parsing', 'parsed', 'indexing') AND deleted_at IS NULL
                   AND (%s::uuid IS NULL OR knowledge_base_id = %s::uuid)
               GROUP BY 1""",
            [base_id, base_id],
        )
        return dict(cursor.fetchall())


@contextmanager
def _alone() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        (mine,) = cursor.fetchone() or (False,)
        try:
            yield mine
        finally:
            if mine:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _existing() -> dict[str, bool]:
    """Return our indexes by name, and whether each is whole."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT c.relname, i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
               WHERE i.indrelid = 'knowledge_chunkvector'::regclass AND c.relname LIKE %s""",
            [INDEX_PREFIX.replace("_", r"\_") + "%"],
        )
        return dict(cursor.fetchall())


def _wanted(least: int) -> dict[str, tuple[UUID, int, int]]:
    """Return base, dimensions and how many vectors, by index name, of the bases that have at least so many.

    Plan: one pass over the index of vectors by base; for a job, not for a request.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT b.id, b.dimensions, v.n FROM knowledge_knowledgebase b JOIN (
                   SELECT knowledge_base_id AS id, count(*) AS n FROM knowledge_chunkvector GROUP BY 1
               ) v USING (id)
               WHERE b.deleted_at IS NULL AND v.n >= %s AND b.dimensions BETWEEN 1 AND %s""",
            [least, MOST_DIMENSIONS],
        )
        return {index_name(base, dimensions): (base, dimensions, n) for base, dimensions, n in cursor.fetchall()}


def _build(name: str, base: UUID, dimensions: int) -> None:
    logger.info("building the index of vectors of base %s", base)
    _run(f"SET maintenance_work_mem = '{MEMORY}'")
    _run(
        f"""CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}" ON knowledge_chunkvector
            USING hnsw ((embedding::halfvec({dimensions:d})) halfvec_ip_ops)
            WITH (m = {LINKS}, ef_construction = {EFFORT}) WHERE knowledge_base_id = '{base}'"""
    )
    _run("RESET maintenance_work_mem")


def _run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
