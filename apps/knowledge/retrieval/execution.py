"""Run the legs of a search in one round trip, and go on with what is left when one of them fails."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import AsyncConnection, AsyncCursor, pq
from psycopg.rows import DictRow

from apps.knowledge.retrieval.legs import Statement
from apps.knowledge.retrieval.outage import cause_of

logger = logging.getLogger(__name__)

_LIMIT = """SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true)"""
ENOUGH = 40  # passages: the 400 nearest vectors are of more, with their children
# How far an HNSW index is walked: on past what the door refuses, until there is enough or 40,000 vectors were seen.
_WALK = """SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '400', true),
       set_config('hnsw.max_scan_tuples', '40000', true)"""


@dataclass(frozen=True, slots=True)
class Leg:
    """A statement, how long it may take, and what to run instead if it takes longer or fails.

    ``approximate``: it walks an index of vectors. ``exact`` is run in its place where it brings fewer than ENOUGH
    passages: the walk ends after so many vectors, and what one may read, or what a filter leaves, can lie beyond.
    """

    statement: Statement
    timeout_ms: int
    fallback: "Leg | None" = None
    approximate: bool = False
    exact: "Leg | None" = None


@dataclass(slots=True)
class Outcome:
    """What the legs brought: rows and milliseconds by name, why some failed, and the names of those that fell back."""

    rows: dict[str, list[DictRow]] = field(default_factory=dict)
    ms: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # ``outage.cause_of``
    fell_back: set[str] = field(default_factory=set)


@contextmanager
def prepared(connection: AsyncConnection[DictRow]) -> Iterator[None]:
    """Let a connection keep the plans of what it runs meanwhile.

    A door is some hundred lines of SQL: planning it takes several times as long as running it. Its text is
    the same for everybody of one kind, so one plan, made without looking at the parameters, serves all.
    """
    connection.prepare_threshold = 0
    try:
        yield
    finally:
        connection.prepare_threshold = None


async def fetch(connection: AsyncConnection[DictRow], statement: Statement, *, timeout_ms: int) -> list[DictRow]:
    """Run one statement under its time limit, in one round trip. Raises psycopg.Error."""
    with prepared(connection):
        async with connection.pipeline():  # up to its end one transaction, which the limit is local to
            await connection.execute(_LIMIT, [f"{timeout_ms}ms"])
            cursor = await connection.execute(*statement, binary=True)  # a megabyte of signs is not spelt out
    return await cursor.fetchall()


async def run_legs(connection: AsyncConnection[DictRow], legs: Mapping[str, Leg]) -> Outcome:
    """Run all legs in one pipeline; those behind a failing one again without it.

    Each leg has its own time limit. A leg that runs out of time, or fails otherwise, is replaced by its fallback,
    if it has one. Errors of the database are logged, never raised: the caller decides what a search
    without that leg is worth.
    """
    outcome = Outcome()
    pending = dict(legs)
    while pending:
        error = await _run_once(connection, pending, outcome)
        for name in outcome.rows:
            pending.pop(name, None)
        if error is None or not pending:
            break
        broken = next(iter(pending))  # the server runs them in order: the first without rows is the one
        fallback = pending[broken].fallback
        if fallback is not None and not connection.closed:
            logger.warning("the %s leg of a search fell back: %s", broken, type(error).__name__)
            pending[broken] = fallback
            outcome.fell_back.add(broken)
            continue
        logger.warning("the %s leg of a search failed: %s", broken, type(error).__name__, exc_info=error)
        gone = list(pending) if connection.closed else [broken]
        outcome.failed |= dict.fromkeys(gone, cause_of(error))
        for name in gone:
            del pending[name]
            outcome.fell_back.discard(name)
    short = {name: leg.exact for name, leg in legs.items() if leg.exact and len(outcome.rows.get(name, ())) < ENOUGH}
    short = {name: leg for name, leg in short.items() if name in outcome.rows}
    if short and not connection.closed:
        error = await _run_once(connection, short, outcome)
        if error is not None:  # what the walk found stands
            outcome.failed |= dict.fromkeys(short, cause_of(error))
    return outcome


async def _run_once(
    connection: AsyncConnection[DictRow], legs: Mapping[str, Leg], outcome: Outcome
) -> psycopg.Error | None:
    """Send everything at once. Up to the pipeline's end it is one transaction, which the limits are local to."""
    cursors: dict[str, AsyncCursor[DictRow]] = {}
    failure = None
    try:
        with prepared(connection):
            async with connection.pipeline():
                for name, leg in legs.items():
                    await connection.execute(_LIMIT, [f"{leg.timeout_ms}ms"])
                    if leg.approximate:
                        await connection.execute(_WALK)
                    cursors[name] = connection.cursor()
                    # An index of one base is seen only by a plan that is made for that base.
                    await cursors[name].execute(*leg.statement, prepare=not leg.approximate, binary=True)
    except psycopg.Error as error:
        failure = error
        if connection.pgconn.pipeline_status != pq.PipelineStatus.OFF:
            await connection.close()  # it was left in the middle of an answer: nothing can be asked on it any more
    for name, cursor in cursors.items():  # those that had finished before another failed have their rows
        if cursor.pgresult is not None and cursor.pgresult.status == pq.ExecStatus.TUPLES_OK:
            outcome.rows[name] = await cursor.fetchall()
            outcome.ms[name] = max((row["ms"] for row in outcome.rows[name]), default=0.0)
    return failure
