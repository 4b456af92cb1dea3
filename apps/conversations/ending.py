"""The end of a turn: answer, citations, status and last event are stored, then the sockets hear of it.

Where the database is away the answer waits in memory for a minute, with a visible step that says
so; then the turn fails for the reader, who still has the text, while storing it is tried on.
"""

import asyncio
import logging
import random

import psycopg

from apps.agents.turn import TurnOutcome, TurnRequest
from apps.common.database import pool
from apps.conversations import errors, rows
from apps.conversations.log import TurnLog, encode
from apps.conversations.sink import TurnSink
from apps.conversations.writer import CONNECT_S, EventWriter

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
GIVE_UP_S = 600.0
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, OSError)


async def end_turn(
    outcome: TurnOutcome,
    *,
    request: TurnRequest,
    log: TurnLog,
    sink: TurnSink,
    writer: EventWriter,
    process: str,
) -> None:
    """Store an outcome and send ``turn.finished``; the stored answer is what was sent as tokens."""
    sink.finish()
    loop = asyncio.get_running_loop()
    began = loop.time()
    pause, lost = 0.1, 0
    while True:
        try:
            await _store(outcome, request=request, log=log, sink=sink, writer=writer)
            return
        except rows.TurnLost:
            lost += 1
            if lost > 5 or not await _put_back(request, log, process):
                logger.warning("turn %s was erased while it ran", request.turn_id)
                _declare_unstored(outcome, request, log)
                return
        except AWAY as error:
            waited = loop.time() - began
            if pause == 0.1:
                logger.warning("the answer waits for the database: %s", type(error).__name__)
                if not log.closed:
                    log.emit("step", {"name": "store_answer", "status": "started", "elapsed_ms": 0,
                                      "detail": {"waiting_for": "database"}})  # fmt: skip
            if waited > PATIENCE_S and not log.closed:
                outcome = _declare_unstored(outcome, request, log)
            if waited > GIVE_UP_S:
                logger.error("the answer could not be stored within %d s", GIVE_UP_S)
                return
        except Exception:
            logger.exception("the answer could not be stored")
            _declare_unstored(outcome, request, log)
            return
        await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 (spreads retries)
        pause = min(pause * 2, 1.0)


async def _store(
    outcome: TurnOutcome, *, request: TurnRequest, log: TurnLog, sink: TurnSink, writer: EventWriter
) -> None:
    """Store events, then the ending; only then append the last event, unless the log has one already."""
    await writer.flush()
    seq = len(log.frames) + (0 if log.closed else 1)
    event = _finished(outcome, request, seq)
    ending = rows.Ending(
        turn_id=request.turn_id,
        conversation_id=request.conversation_id,
        status=outcome.status,
        text=sink.text,
        seq=seq,
        at_ms=log.now_ms(),
        event=event,
        sources=outcome.sources or sink.sources(),
        model=outcome.model,
        usage=outcome.usage,
        error=outcome.error,
    )
    async with (await pool()).connection(timeout=CONNECT_S) as connection:
        await rows.store_ending(connection, ending)
    if not log.closed:
        log.append("turn.finished", encode(event).decode(), at_ms=ending.at_ms)
        log.written = len(log.rows)


def _finished(outcome: TurnOutcome, request: TurnRequest, seq: int) -> dict[str, object]:
    return {
        "status": outcome.status,
        "message": str(rows.message_id(request.turn_id, "assistant")),
        "error": outcome.error,
        "last_seq": seq,
    }


async def _put_back(request: TurnRequest, log: TurnLog, process: str) -> bool:
    """Insert the turn anew and have its events stored again."""
    try:
        async with (await pool()).connection(timeout=CONNECT_S) as connection:
            back = await rows.put_back(connection, request.turn_id, request.conversation_id, request.question, process)
    except AWAY:
        return True  # tried again by the caller
    log.written = 0
    return back


def _declare_unstored(outcome: TurnOutcome, request: TurnRequest, log: TurnLog) -> TurnOutcome:
    """Tell the sockets that the text is only on their screens; return what is stored, should it still be."""
    failed = TurnOutcome(
        status="failed",
        text=outcome.text,
        sources=outcome.sources,
        usage=outcome.usage,
        error=errors.AnswerNotStored().as_dict(),
        model=outcome.model,
    )
    if not log.closed:
        log.append("turn.finished", encode(_finished(failed, request, len(log.frames) + 1)).decode())
        log.close()
    return failed
