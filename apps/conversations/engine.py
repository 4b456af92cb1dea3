"""Turns as tasks of the server: begun once, watched by any number of sockets, ended in order.

A turn belongs to the process that began it, never to a socket. Its events are in memory while it
runs (``TurnLog``) and in rows a quarter of a second later; where the process dies, another one, or
its successor, finds the turn without a living owner and ends it as interrupted (``rows``).
"""

import asyncio
import contextvars
import logging
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import psycopg
from django.db import DatabaseError
from django.utils import translation
from django.utils.module_loading import import_string

from apps.agents.turn import EventSink, TurnOutcome, TurnRequest
from apps.common import logs
from apps.common.database import pool
from apps.common.errors import KnowSphereError
from apps.conversations import errors, rows_liveness
from apps.conversations.ending import Ending
from apps.conversations.erasing import erase_deleted
from apps.conversations.log import TurnLog
from apps.conversations.news import WISH_S, News
from apps.conversations.replay import fit_frames
from apps.conversations.sink import TurnSink
from apps.conversations.writer import EventWriter
from apps.models import ledger
from apps.workspaces.principals import Principal

logger = logging.getLogger(__name__)

BEAT_S = 2.0
SWEEP_S = 3.0
ERASE_S = 30.0
STOP_PATIENCE_S = 0.5  # a runner that was asked to stop gets this long before it is cancelled
GRACE_S = 10.0  # how long turns may go on after SIGTERM
LOOK_S = 1.0  # how often a queued turn looks whether another process has ended the one before it
TURNS_A_PERSON = 256  # at once, in one process
REMEMBER_S = 30.0  # how long a finished turn's frames stay in memory for late watchers


class RunTurn(Protocol):
    """The agents' side of a turn (``apps.agents.runner.run_turn``)."""

    def __call__(
        self, request: TurnRequest, *, events: EventSink, stop: asyncio.Event
    ) -> Coroutine[Any, Any, TurnOutcome]: ...


@dataclass(eq=False)
class Running:
    """A turn of this process."""

    request: TurnRequest
    language: str
    log: TurnLog
    sink: TurnSink
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)  # while it is queued: look whether its turn has come
    task: asyncio.Task[None] | None = None
    work: asyncio.Task[TurnOutcome] | None = None


class Engine:
    """The turns of one process. ``run_turn`` is the agents' runner unless a test gives another."""

    def __init__(self, run_turn: RunTurn | None = None) -> None:
        self.run_turn = run_turn
        self.grace_s = GRACE_S
        self.remember_s = REMEMBER_S
        self.process = ""
        self.closing = False
        self._running: dict[UUID, Running] = {}
        self._logs: dict[UUID, tuple[TurnLog, Principal, int]] = {}  # with its asker, and ``withdrawals`` as it began
        self._sockets: dict[UUID, set[Callable[[UUID], None]]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def withdrawals(self) -> int:
        """A number that is another one whenever somebody's right may have gone."""
        return self.news.withdrawals

    @property
    def started(self) -> bool:
        """Whether this process can run turns."""
        return bool(self._tasks) and not self.closing

    async def start(self) -> None:
        """Begin to listen, to beat and to write; end what a dead process left behind."""
        self.process = f"{socket.gethostname()[:30]}-{os.getpid()}-{secrets.token_hex(4)}"
        self.closing = False
        self._running, self._logs, self._sockets = {}, {}, {}
        self.writer = EventWriter()
        self.news = News(self.process, self._hear)
        loops = (
            self.writer.run(),
            self.news.run(),
            self._every(BEAT_S, self._beat),
            self._every(SWEEP_S, self._sweep),
            self._every(ERASE_S, erase_deleted),
        )
        self._tasks = [asyncio.create_task(loop, context=contextvars.Context()) for loop in loops]

    async def stop(self) -> None:
        """Let turns finish for the grace time, interrupt the others, store all, and end."""
        self.closing = True
        for running in self._running.values():
            running.wake.set()
        tasks = [running.task for running in self._running.values() if running.task]
        if tasks:
            await asyncio.wait(tasks, timeout=self.grace_s)
            for running in list(self._running.values()):
                if running.work:
                    running.work.cancel()
            await asyncio.wait(tasks, timeout=5)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await ledger.flush_soon()

    # Beginning and running

    def check_room(self, asker: Principal) -> None:
        """Raise TooManyTurns where as many turns of a person run in this process as may."""
        if (
            sum(running.request.asker.asker_id == asker.asker_id for running in self._running.values())
            >= TURNS_A_PERSON
        ):
            raise errors.TooManyTurns(limit=TURNS_A_PERSON)

    def read_ahead(self, request: TurnRequest) -> "asyncio.Future[Any] | None":
        """Begin to read for a turn whose row is about to be inserted; None where its runner reads by itself."""
        return _of_runner("read_ahead")(request) if self.run_turn is None else None

    def begin(
        self, request: TurnRequest, *, language: str, place: dict[str, Any] | None = None, waiting: bool = False
    ) -> None:
        """Start a turn whose row is inserted, and show it in the conversation's open sockets.

        ``place``: what its first event says besides the question. ``waiting``: it is queued, and runs
        when the conversation's earlier turns are over.

        The task has a context of its own; the request's would pin a thread and a connection for as
        long as the turn runs.
        """
        log = TurnLog(request.turn_id)
        running = Running(request, language, log, TurnSink(log, request, {**(place or {}), "waiting": waiting}))
        self._running[request.turn_id] = running
        self._logs[request.turn_id] = log, request.asker, self.withdrawals
        self.writer.add(log)
        running.task = asyncio.create_task(
            self._run(running, waiting=waiting), name=f"turn {request.turn_id}", context=contextvars.Context()
        )
        for join in list(self._sockets.get(request.conversation_id, ())):
            join(request.turn_id)

    async def _run(self, running: Running, *, waiting: bool) -> None:
        logs.request_id.set(running.request.turn_id.hex)
        logs.turn_id.set(str(running.request.turn_id))
        translation.activate(running.language)
        outcome = await self._wait_for_turn(running) if waiting else None
        if outcome is None:
            run_turn: RunTurn = self.run_turn or _of_runner("run_turn")
            running.work = asyncio.create_task(run_turn(running.request, events=running.sink, stop=running.stop))
            await asyncio.wait({running.work})
            outcome = self._outcome(running, running.work)
        try:
            ending = Ending(outcome, request=running.request, log=running.log, sink=running.sink, writer=self.writer)
            await ending.run(self.process)
        finally:
            running.log.close()
            self._forget(running)
            self.writer.discard(running.log)
            asyncio.get_running_loop().call_later(self.remember_s, self._logs.pop, running.request.turn_id, None)

    async def _wait_for_turn(self, running: Running) -> TurnOutcome | None:
        """Return None when a queued turn may run, or how it ended without.

        What ends in this process is known at once; of what another one runs the rows are asked.
        """
        while not running.stop.is_set() and not self.closing:
            running.wake.clear()
            try:
                async with (await pool()).connection(timeout=BEAT_S) as connection:
                    if await rows_liveness.claim_turn(connection, running.request.turn_id):
                        return None
            except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.UniqueViolation) as error:
                logger.info("a queued turn waits on: %s", type(error).__name__)
            try:
                async with asyncio.timeout(LOOK_S):
                    await running.wake.wait()
            except TimeoutError:
                pass
        if running.stop.is_set():
            return TurnOutcome("stopped", "")
        return TurnOutcome("interrupted", "", error=errors.TurnInterrupted().as_dict())

    def _outcome(self, running: Running, work: asyncio.Task[TurnOutcome]) -> TurnOutcome:
        """Return how the runner ended, also where it did not return."""
        text = running.sink.text
        if work.cancelled():
            if running.stop.is_set() and not self.closing:
                return TurnOutcome("stopped", text)
            return TurnOutcome("interrupted", text, error=errors.TurnInterrupted().as_dict())
        failure = work.exception()
        if failure is None:
            return work.result()
        if isinstance(failure, KnowSphereError):
            return TurnOutcome("failed", text, error=failure.as_dict())
        logger.error("the runner raised", exc_info=failure)
        return TurnOutcome("failed", text, error=errors.TurnCrashed().as_dict())

    def _forget(self, running: Running) -> None:
        self._running.pop(running.request.turn_id, None)
        for other in self._running.values():
            if other.request.conversation_id == running.request.conversation_id:
                other.wake.set()

    # Watching and stopping

    def follow(
        self, turn_id: UUID, *, after: int = 0, reader: Principal | None = None
    ) -> AsyncGenerator[list[str], None]:
        """Yield batches of a turn's frames above ``after`` until its end, wherever it runs.

        What it quotes is fitted to the rights of ``reader``, where one is given: of rows always, of a turn in memory
        since something was taken away from anybody. A key that did not ask the turn reads its rows: keys are narrower
        than their person.
        """
        log, asker, began = self._logs.get(turn_id, (None, None, 0))
        if log is None or (reader is not None and reader.kind == "key" and reader != asker):
            return self.news.watch_rows(turn_id, after=after, reader=reader)
        return log.watch(after=after) if reader is None else self._watch_log(log, began, after, reader)

    async def _watch_log(
        self, log: TurnLog, began: int, after: int, reader: Principal
    ) -> AsyncGenerator[list[str], None]:
        async with aclosing(log.watch(after=after)) as batches:
            async for batch in batches:
                yield batch if began == self.withdrawals else await fit_frames(reader, batch)

    def join(self, conversation_id: UUID, callback: Callable[[UUID], None]) -> Callable[[], None]:
        """Call back with the id of each turn that begins in a conversation; return what ends this."""
        callbacks = self._sockets.setdefault(conversation_id, set())
        callbacks.add(callback)

        def leave() -> None:
            callbacks.discard(callback)
            if not callbacks and self._sockets.get(conversation_id) is callbacks:
                del self._sockets[conversation_id]

        return leave

    def stop_here(self, turn_id: UUID) -> bool:
        """Stop a turn of this process: the runner first gets a word, then it is cancelled. False if it is not here."""
        running = self._running.get(turn_id)
        if running is None:
            return False
        if not running.stop.is_set():
            running.stop.set()
            running.wake.set()
            asyncio.get_running_loop().call_later(STOP_PATIENCE_S, self._insist, running)
        return True

    @staticmethod
    def _insist(running: Running) -> None:
        if running.work and not running.work.done():
            running.work.cancel()

    def _hear(self, word: str, turn_id: UUID) -> None:
        if word == "stop":
            self.stop_here(turn_id)
        elif word == "watch":
            self.writer.announce(turn_id, seconds=WISH_S)

    # Life and death

    @staticmethod
    async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (psycopg.Error, DatabaseError) as error:
                logger.info("%s waits for the database: %s", work.__name__, type(error).__name__)
            except Exception:
                logger.exception("%s failed", work.__name__)
            await asyncio.sleep(seconds)

    async def _beat(self) -> None:
        """Say that this process lives; find stops whose notice was lost, and turns that it does not know."""
        async with (await pool()).connection(timeout=BEAT_S) as connection:
            for turn in await rows_liveness.beat(connection, self.process):
                if turn["id"] not in self._running:
                    if turn["new"]:  # its insert is answered in the next moment
                        continue
                    await rows_liveness.interrupt(connection, turn["id"], error=errors.TurnInterrupted().as_dict())
                elif turn["stop_requested"]:
                    self.stop_here(turn["id"])

    async def _sweep(self) -> None:
        """End turns whose process is gone."""
        async with (await pool()).connection(timeout=BEAT_S) as connection:
            for turn_id in await rows_liveness.find_abandoned(connection):
                if turn_id not in self._running and await rows_liveness.interrupt(
                    connection, turn_id, error=errors.TurnInterrupted().as_dict()
                ):
                    logger.warning("turn %s was left behind; marked as interrupted", turn_id)


def _of_runner(name: str) -> Any:
    """Import the agents' side with the first turn, not with every command."""
    return import_string(f"apps.agents.runner.{name}")


ENGINE = Engine()
