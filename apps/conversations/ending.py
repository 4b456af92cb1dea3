"""The end of a turn: answer, citations, status and last event are stored, then the sockets hear of it.

Where the database is away the answer waits in memory for a minute, with a visible step that says
so; then the turn fails for the reader, who still has the text, while storing it is tried on.
"""

import asyncio
import logging
import random
from dataclasses import replace

import psycopg
from django.utils.translation import gettext as _

from apps.agents.turn import TurnOutcome, TurnRequest
from apps.common.database import pool
from apps.conversations import errors, rows
from apps.conversations.log import TurnLog, encode
from apps.conversations.sink import TurnSink
from apps.conversations.writer import CONNECT_S, EventWriter

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
GIVE_UP_S = 600.0
TIMES_LOST = 5
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, OSError)


class Ending:
    """The end of one turn; ``run`` returns when nothing is left to do."""

    def __init__(
        self, outcome: TurnOutcome, *, request: TurnRequest, log: TurnLog, sink: TurnSink, writer: EventWriter
    ) -> None:
        self.outcome = outcome
        self.request = request
        self.log = log
        self.sink = sink
        self.writer = writer
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._warned = False
        self._times_lost = 0

    async def run(self, process: str) -> None:
        """Store the outcome and send ``turn.finished``; the stored answer is what was sent as tokens."""
        self.sink.finish()
        pause = 0.1
        while True:
            try:
                await self._store()
                return
            except rows.TurnLost:
                self._times_lost += 1
                if self._times_lost > TIMES_LOST or not await self._put_back(process):
                    logger.warning("turn %s was erased while it ran", self.request.turn_id)
                    self._fail()
                    return
            except AWAY as error:
                if not self._wait_on(error):
                    return
            except Exception:
                logger.exception("the answer could not be stored")
                self._fail()
                return
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 (spreads retries)
            pause = min(pause * 2, 1.0)

    async def _store(self) -> None:
        """Store events, then the ending; only then append the last event, unless the log has one already."""
        await self.writer.flush()
        if self._warned and not self.log.closed:
            self._warned = False
            self._step("finished", "")
            await self.writer.flush()
        seq = len(self.log.frames) + (0 if self.log.closed else 1)
        event = self._finished(seq)
        ending = rows.Ending(
            turn_id=self.request.turn_id,
            status=self.outcome.status,
            text=self.sink.text,
            seq=seq,
            at_ms=self.log.now_ms(),
            event=event,
            sources=self.outcome.sources or self.sink.sources(),
            model=self.outcome.model,
            usage=self.outcome.usage,
            error=self.outcome.error,
        )
        async with (await pool()).connection(timeout=CONNECT_S) as connection:
            await rows.store_ending(connection, ending)
        if not self.log.closed:
            self.log.append("turn.finished", encode(event).decode(), at_ms=ending.at_ms)
            self.log.written = len(self.log.rows)

    async def _put_back(self, process: str) -> bool:
        """Insert the turn anew and have its events stored again; False if its conversation is gone."""
        try:
            async with (await pool()).connection(timeout=CONNECT_S) as connection:
                back = await rows.put_back(
                    connection,
                    self.request.turn_id,
                    self.request.conversation_id,
                    self.request.question,
                    process,
                )
        except AWAY:
            return True
        self.log.written = 0
        return back

    def _wait_on(self, error: Exception) -> bool:
        """Tell the reader what is waited for, and after a minute that it took too long. False: give up."""
        waited = self._clock() - self._began
        if not self._warned:
            self._warned = True
            logger.warning("the answer waits for the database: %s", type(error).__name__)
            self._step("started", _("The database does not answer. The answer is kept and stored when it is back."))
        if waited > PATIENCE_S:
            self._fail()
        if waited > GIVE_UP_S:
            logger.error("the answer could not be stored within %d s", GIVE_UP_S)
        return waited <= GIVE_UP_S

    def _step(self, status: str, detail: str) -> None:
        if not self.log.closed:
            elapsed = int((self._clock() - self._began) * 1000) if status == "finished" else 0
            step = {"name": "store_answer", "status": status, "elapsed_ms": elapsed, "detail": detail}
            self.log.emit("step", step)

    def _fail(self) -> None:
        """Tell the sockets that the text is only on their screens; that is also what may still be stored."""
        if self.log.closed:
            return
        self.outcome = replace(self.outcome, status="failed", error=errors.AnswerNotStored().as_dict())
        self.log.append("turn.finished", encode(self._finished(len(self.log.frames) + 1)).decode())
        self.log.close()

    def _finished(self, seq: int) -> dict[str, object]:
        return {
            "status": self.outcome.status,
            "message": str(rows.message_id(self.request.turn_id, "assistant")),
            "error": self.outcome.error,
            "last_seq": seq,
        }
