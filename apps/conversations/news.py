"""What processes tell each other about turns, and the database about rights, over LISTEN and NOTIFY.

Also watching from afar.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from apps.common.database import conninfo, pool
from apps.conversations import rows, rows_liveness
from apps.conversations.log import frame
from apps.conversations.replay import fit_for
from apps.workspaces.principals import Principal
from apps.workspaces.withdrawals import CHANNEL as WITHDRAWALS

logger = logging.getLogger(__name__)

ASK_AGAIN_S = 5.0  # how often a watcher renews its wish for news
WISH_S = 15.0  # how long a wish lasts
LOOK_S = 1.0  # a watcher looks at the rows at least this often, should a notice be lost

Hear = Callable[[str, UUID], None]


class News:
    """One connection that listens, and whose lock tells the others that this process lives.

    ``withdrawals`` is another number whenever a right may have gone: somebody's, anywhere. What was known before
    has to be looked at again; so it has where notices may have been missed.
    """

    def __init__(self, process: str, hear: Hear) -> None:
        self.withdrawals = 0
        self._process = process
        self._hear = hear
        self._waiting: dict[UUID, set[asyncio.Event]] = {}

    async def run(self) -> None:
        """Listen for ever; after a lost connection, again."""
        pause = 0.1
        while True:
            try:
                connection = await rows.Connection.connect(conninfo(), autocommit=True, row_factory=dict_row)
                async with connection:
                    await rows_liveness.hold_life(connection, self._process)
                    await connection.execute(f"LISTEN {rows.CHANNEL}")
                    await connection.execute(f"LISTEN {WITHDRAWALS}")
                    self.withdrawals += 1
                    pause = 0.1
                    async for notice in connection.notifies():
                        if notice.channel == WITHDRAWALS:
                            self.withdrawals += 1
                        else:
                            self._take(notice.payload)
            except psycopg.Error as error:
                logger.info("listening again in %.1f s: %s", pause, type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2.0)

    def _take(self, payload: str) -> None:
        word, _, name = payload.partition(" ")
        try:
            turn_id = UUID(name)
        except ValueError:
            return
        if word == "rows":
            for event in self._waiting.get(turn_id, ()):
                event.set()
        else:
            self._hear(word, turn_id)

    async def watch_rows(
        self, turn_id: UUID, *, after: int, reader: Principal | None
    ) -> AsyncGenerator[list[str], None]:
        """Yield a turn's frames from its rows, and follow it while another process runs it."""
        news = asyncio.Event()
        self._waiting.setdefault(turn_id, set()).add(news)
        loop = asyncio.get_running_loop()
        asked_at = -ASK_AGAIN_S
        try:
            while True:
                news.clear()
                async with (await pool()).connection() as connection:
                    events = await rows.read_events(connection, turn_id, after=after)
                    ended = bool(events) and events[-1]["type"] == "turn.finished"
                    if not events and not await rows.is_active(connection, turn_id):
                        events = await rows.read_events(connection, turn_id, after=after)  # it ended between the two
                        ended = not events or events[-1]["type"] == "turn.finished"
                    elif events and not ended and loop.time() - asked_at > ASK_AGAIN_S:
                        asked_at = loop.time()
                        await rows.tell(connection, "watch", turn_id)
                    shown = await fit_for(reader, events, connection) if reader else events
                if events:
                    after = events[-1]["seq"]
                    yield [frame(turn_id, e["seq"], e["type"], e["at_ms"], e["data"]) for e in shown]
                if ended:
                    return
                if not events:
                    await self._wait(news)
        finally:
            self._waiting[turn_id].discard(news)
            if not self._waiting[turn_id]:
                del self._waiting[turn_id]

    @staticmethod
    async def _wait(news: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await news.wait()
        except TimeoutError:
            pass
