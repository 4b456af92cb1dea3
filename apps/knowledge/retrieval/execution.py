"""Run the legs of a search in one round trip, and go on with what is left when one of them fails."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

import psycopg
from psycopg import AsyncConnection, AsyncCursor, pq
from psycopg.rows import DictRow

from apps.knowledge.retrieval.legs import Statement

logger = logging.getLogger(__name__)

_LIMIT = "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true)"


@dataclass(frozen=True, slots=True)
class Leg:
    """A statement, how long it may take, and what to run instead if it takes longer."""

    statement: Statement
    timeout_ms: int
    fallback: "Leg | None" = None


@dataclass(slots=True)
class Outcome:
    """What the legs brought: rows and milliseconds by name, and the names of those that failed or fell back."""

    rows: dict[str, list[DictRow]] = field(default_factory=dict)
    ms: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    fell_back: set[str] = field(default_factory=set)


async def run_legs(connection: AsyncConnection[DictRow], legs: Mapping[str, Leg]) -> Outcome:
    """Run all legs in one pipeline; those behind a failing one again without it.

    Each leg has its own time limit. A leg that runs out of time is replaced by its fallback, if it
    has one. Errors of the database are logged, never raised: the caller decides what a search
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
        if isinstance(error, psycopg.errors.QueryCanceled) and fallback is not None:
            pending[broken] = fallback
            outcome.fell_back.add(broken)
            continue
        logger.warning("the %s leg of a search failed: %s", broken, type(error).__name__, exc_info=error)
        outcome.failed.add(broken)
        del pending[broken]
        if connection.closed:
            outcome.failed.update(pending)
            break
    return outcome


async def _run_once(
    connection: AsyncConnection[DictRow], legs: Mapping[str, Leg], outcome: Outcome
) -> psycopg.Error | None:
    cursors: dict[str, AsyncCursor[DictRow]] = {}
    began = perf_counter()
    try:
        async with connection.pipeline(), connection.transaction():
            for name, leg in legs.items():
                await connection.execute(_LIMIT, [f"{leg.timeout_ms}ms"])
                cursors[name] = connection.cursor()
                await cursors[name].execute(*leg.statement)
            for name, cursor in cursors.items():
                outcome.rows[name] = await cursor.fetchall()
                now = perf_counter()
                outcome.ms[name], began = (now - began) * 1000, now
    except psycopg.Error as error:
        await _collect(cursors, outcome)
        return error
    return None


async def _collect(cursors: Mapping[str, AsyncCursor[DictRow]], outcome: Outcome) -> None:
    """Keep the rows of the legs that had finished before another failed."""
    for name, cursor in cursors.items():
        finished = cursor.pgresult is not None and cursor.pgresult.status == pq.ExecStatus.TUPLES_OK
        if name not in outcome.rows and finished:
            outcome.rows[name] = await cursor.fetchall()
            outcome.ms.setdefault(name, 0.0)
