"""One task stores the events of all turns and the calls that they made: an insert each every quarter of a second."""

import asyncio
import logging
from uuid import UUID

from apps.common.database import pool
from apps.conversations import rows
from apps.conversations.log import TurnLog
from apps.models import ledger

logger = logging.getLogger(__name__)

EVERY_S = 0.25
EVERY_WATCHED_S = 0.05  # while another process shows one of the turns
CONNECT_S = 1.0  # a failed attempt starts the next one, so waiting long gains nothing
BATCH = 2_000  # events in one statement


class EventWriter:
    """Moves what logs have appended, and the ledger has booked, into rows. What could not be stored is tried again."""

    def __init__(self) -> None:
        self._logs: dict[UUID, TurnLog] = {}
        self._watched: dict[UUID, float] = {}  # turn → until when another process wants news
        self._lock = asyncio.Lock()
        self._failing = False

    def add(self, log: TurnLog) -> None:
        """Store this log's events from now on; its turn's row is committed."""
        self._logs[log.turn_id] = log

    def discard(self, log: TurnLog) -> None:
        """Forget a log whose events are stored."""
        self._logs.pop(log.turn_id, None)
        self._watched.pop(log.turn_id, None)

    def announce(self, turn_id: UUID, *, seconds: float) -> None:
        """Tell other processes about this turn's new rows for a while."""
        if turn_id in self._logs:
            self._watched[turn_id] = asyncio.get_running_loop().time() + seconds

    async def run(self) -> None:
        """Store for ever; a database that is away costs nothing but a log line."""
        while True:
            await asyncio.sleep(EVERY_WATCHED_S if self._watched else EVERY_S)
            try:
                await self.flush()
            except Exception as error:  # noqa: BLE001 (the task must live; the events wait)
                if not self._failing:
                    logger.warning("events wait for the database: %s", type(error).__name__)
                self._failing = True
            else:
                self._failing = False

    async def flush(self) -> None:
        """Store all that is new. Raises psycopg's errors; nothing is lost by them."""
        async with self._lock:
            booked = ledger.is_waiting()
            while (news := self._news()) or booked:
                async with (await pool()).connection(timeout=CONNECT_S) as connection:
                    if news:
                        await rows.insert_events(
                            connection, [(log.turn_id, row) for log, end in news for row in log.rows[log.written : end]]
                        )
                        for log, end in news:
                            log.written = end
                        await self._announce(connection, news)
                    if booked:
                        booked = False
                        await ledger.write(connection)

    def _news(self) -> list[tuple[TurnLog, int]]:
        """Return logs with new events and how far to store them, up to one batch."""
        news: list[tuple[TurnLog, int]] = []
        room = BATCH
        for log in self._logs.values():
            fresh = min(len(log.rows) - log.written, room)
            if fresh:
                news.append((log, log.written + fresh))
                room -= fresh
        return news

    async def _announce(self, connection: rows.Connection, news: list[tuple[TurnLog, int]]) -> None:
        now = asyncio.get_running_loop().time()
        for log, _ in news:
            if (until := self._watched.get(log.turn_id)) is None:
                continue
            if until < now:
                del self._watched[log.turn_id]
            else:
                await rows.tell(connection, "rows", log.turn_id)
