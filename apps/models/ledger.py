"""The ledger of calls: booked in memory as they end, written in one statement for all that ended meanwhile.

In the web process ``write`` goes with the events of turns: four times a second, and before a turn's last event, so
that no call of an answer that somebody has seen to its end is lost, however the process ends. ``flush`` is called
when a document is done, every few seconds in the web process, and as a process ends.
"""

import asyncio
import atexit
import contextlib
import logging
import threading
from collections import deque
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from apps.common.database import in_db
from apps.common.text import storable
from apps.models import budgets
from apps.models.accounting import Entry
from apps.models.models import UsageRecord

logger = logging.getLogger(__name__)

EVERY_S = 5.0
KEPT = 20_000  # calls in memory while the database is away; beyond it the oldest are lost, and logged
ROWS = 1_000  # a statement
MOST_COST = Decimal(999_999_999)  # of one call, that the column holds

FIELDS = [field for field in UsageRecord._meta.concrete_fields if not field.primary_key]
COLUMNS = ", ".join(f'"{field.column}"' for field in FIELDS)
TABLE = UsageRecord._meta.db_table
# Its disk is not waited for: whoever ends a turn behind it waits for the same log.
WRITE = f"""
WITH written AS (INSERT INTO {TABLE} ({COLUMNS}) SELECT {COLUMNS} FROM json_populate_recordset(NULL::{TABLE}, %s::json))
SELECT set_config('synchronous_commit', 'off', true)
"""  # noqa: S608 (names of our own)

_pending: deque[Entry] = deque()
_writing = threading.Lock()


def book(entry: Entry) -> None:
    """Note a call; cheap, never blocks, never raises."""
    if len(_pending) >= KEPT:
        with contextlib.suppress(IndexError):
            lost = _pending.popleft()
            logger.error("a call of %s is lost to the ledger: the database does not take it", lost.model.reference)
    _pending.append(entry)


def flush() -> int:
    """Write what is booked, one statement a thousand calls; return how many. What fails is kept for later.

    A row that the database does not take costs the others of its statement nothing: they are written one by one.
    """
    written = singly = 0
    with _writing:
        while _pending:
            entries = [_pending.popleft() for _ in range(1 if singly else min(len(_pending), ROWS))]
            singly = max(0, singly - 1)
            try:
                UsageRecord.objects.bulk_create(map(_row, entries))
            except (OperationalError, InterfaceError) as error:
                _pending.extendleft(reversed(entries))
                logger.warning("the ledger waits for the database: %s", type(error).__name__)
                break
            except DatabaseError:
                if len(entries) == 1:
                    logger.exception("a call of %s is lost to the ledger", entries[0].model.reference)
                    continue
                _pending.extendleft(reversed(entries))
                singly = len(entries)  # one of them is to blame, and the others are not lost for it
                continue
            written += len(entries)
    try:
        budgets.settle_debts()
    except DatabaseError as error:
        logger.warning("budgets wait for the database: %s", type(error).__name__)
    return written


def is_waiting() -> bool:
    """Whether calls are booked that are not written."""
    return bool(_pending)


async def write(connection: psycopg.AsyncConnection[Any]) -> None:
    """Write what is booked, without a thread and without the ORM. What fails is kept for later.

    Raises psycopg's OperationalError and InterfaceError: the database is away.
    """
    while _pending:
        entries = [_pending.popleft() for _ in range(min(len(_pending), ROWS))]
        rows = [{field.column: getattr(row, field.attname) for field in FIELDS} for row in map(_row, entries)]
        try:
            await connection.execute(WRITE, (orjson.dumps(rows, default=str).decode(),))
        except BaseException as error:
            _pending.extendleft(reversed(entries))
            away = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
            if away or not isinstance(error, psycopg.Error):
                raise
            await flush_soon()  # one of them is to blame: they are written one by one
            return


async def flush_soon() -> None:
    """Write what is booked and what budgets get back, off the event loop. Never raises."""
    if _pending or budgets.owe():
        try:
            await in_db(flush)
        except Exception:
            logger.exception("the ledger was not written")


def forget_pending() -> None:
    """Drop what is not written: for tests, whose rows are rolled back."""
    _pending.clear()
    budgets.forget()


def erase_conversation(conversation_id: UUID) -> None:
    """Take a conversation's traces out of the ledger. What it cost stays in its workspace's sums."""
    rows = UsageRecord.objects.filter(conversation_id=conversation_id)
    rows.update(conversation_id=None, turn_id=None)


class Ledger:
    """Writing as a service of the ASGI lifespan."""

    _task: "asyncio.Task[None] | None" = None

    async def start(self) -> None:
        """Begin to write every few seconds what turns did not."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write the rest."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await flush_soon()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await flush_soon()


def _row(entry: Entry) -> UsageRecord:
    caller, model, usage, price = entry.caller, entry.model, entry.usage, entry.model.price
    return UsageRecord(
        at=entry.at,
        workspace_id=caller.workspace_id,
        user_id=caller.user_id,
        agent_id=caller.agent_id,
        conversation_id=caller.conversation_id,
        turn_id=caller.turn_id,
        widget_id=caller.widget_id,
        model=storable(model.reference)[:250],
        kind=str(model.kind),
        purpose=entry.purpose[:30],
        tokens_in=_count(usage.prompt),
        tokens_out=_count(usage.completion),
        tokens_cached=_count(usage.cached),
        estimated=usage.estimated,
        ms=entry.ms,
        outcome=entry.outcome,
        price_in=price.input if price else None,
        price_out=price.output if price else None,
        price_cached=price.cached if price else None,
        currency=price.currency if price else "",
        cost=None if entry.cost is None else min(entry.cost, MOST_COST),
    )


def _count(tokens: int) -> int:
    """Return a vendor's number as the column holds it, whatever it said."""
    return min(max(tokens, 0), 2_147_483_647)


@atexit.register
def _last_words() -> None:
    """Write what a command or a worker leaves behind."""
    if _pending:
        with contextlib.suppress(Exception):
            flush()
            connection.close()
