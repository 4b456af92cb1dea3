"""One turn's numbered events, encoded once, for any number of watchers.

The list only grows. A watcher is an index into it, and sleeps on a future where it has caught up;
what an event costs does not depend on how many watch.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

import orjson

from apps.common.text import storable

# Leading edge: a text leaves at once unless the one before left less than this ago. At up to 50
# texts a second nothing is ever held back; above, the socket's cost stops growing with the speed.
WINDOW_S = 0.015
SECOND_WATCHER_S = 0.04
# What tells of the way to an answer may wait as long for what comes next: each frame that is sent by itself wakes
# its reader, who works on the same machine as the turn does, or a proxy that does.
PATIENT = {"turn.started", "step", "understanding"}
SOON_S = 0.001  # from the moment at which a model is asked: then there is nothing else to do
RESERVED = {"seq", "turn", "type", "at_ms"}

Row = tuple[int, str, int, str]  # seq, type, at_ms, data as JSON


def encode(data: dict[str, Any]) -> bytes:
    """Return ``data`` as JSON that PostgreSQL takes: without NUL and lone surrogates."""
    try:
        encoded = orjson.dumps(data, default=str)
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        return orjson.dumps(_clean(data), default=str)
    return orjson.dumps(_clean(data), default=str) if b"\\u0000" in encoded else encoded


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def frame(turn_id: UUID | str, seq: int, kind: str, at_ms: int, data: str) -> str:
    """Return the text of one socket frame; ``data`` is a JSON object."""
    head = f'{{"turn":"{turn_id}","seq":{seq},"type":"{kind}","at_ms":{at_ms}'
    return f"{head}}}" if data == "{}" else f"{head},{data[1:]}"


class TurnLog:
    """The events of one turn, in memory while it runs and a little longer.

    ``written`` counts the rows that the event writer has stored. All calls belong to one event
    loop.
    """

    __slots__ = (
        "_began", "_buffer", "_buffered", "_last_flush", "_loop", "_name", "_timer", "_waiters", "_waking",
        "_watchers",
        "closed", "frames", "rows", "turn_id", "written",
    )  # fmt: skip

    def __init__(self, turn_id: UUID) -> None:
        self.turn_id = turn_id
        self._name = str(turn_id)
        self.frames: list[str] = []
        self.rows: list[Row] = []
        self.written = 0
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._buffer: list[str] = []
        self._buffered = ""  # the type of what is in the buffer
        self._last_flush = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._waking: asyncio.TimerHandle | None = None  # where patient events wait for those who watch
        self._watchers: list[object] = []

    def emit(self, kind: str, data: dict[str, Any]) -> int:
        """Append one event, after whatever text was waiting; return its number."""
        if RESERVED & data.keys():
            raise ValueError(f"{kind} carries a reserved name: {sorted(RESERVED & data.keys())}")
        self.flush()
        return self.append(kind, encode(data).decode())

    def append(self, kind: str, data: str, *, at_ms: int | None = None) -> int:
        """Append one event whose data is JSON already."""
        seq = len(self.frames) + 1
        at_ms = self.now_ms() if at_ms is None else at_ms
        self.frames.append(frame(self._name, seq, kind, at_ms, data))
        self.rows.append((seq, kind, at_ms, data))
        if kind not in PATIENT:
            self._wake()
        elif self._waking is None:
            self._waking = self._loop.call_later(WINDOW_S, self._wake)
        return seq

    def send_soon(self) -> None:
        """Let what waits leave while a model is asked, not with its first words."""
        if self._waking is not None:
            self._waking.cancel()
            self._waking = self._loop.call_later(SOON_S, self._wake)

    def now_ms(self) -> int:
        """Return the milliseconds since the turn began."""
        return int((self._loop.time() - self._began) * 1000)

    def delta(self, kind: str, text: str) -> None:
        """Append a piece of text, or let it join the one that is waiting."""
        if self._buffered != kind:
            self.flush()
            self._buffered = kind
        if self._timer is None:
            now = self._loop.time()
            wait = self._last_flush + WINDOW_S - now
            if wait <= 0:
                self._last_flush = now
                self.append(kind, orjson.dumps({"text": text}).decode())
                return
            self._timer = self._loop.call_later(wait, self.flush)
        self._buffer.append(text)

    def flush(self) -> None:
        """Send the text that is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._buffer:
            text = "".join(self._buffer)
            self._buffer.clear()
            self._last_flush = self._loop.time()
            self.append(self._buffered, orjson.dumps({"text": text}).decode())

    def close(self) -> None:
        """Say that nothing follows; watchers end after the last event."""
        self.flush()
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
        if self._waiters:
            waiting, self._waiters = self._waiters, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    async def watch(self, *, after: int = 0) -> AsyncGenerator[list[str], None]:
        """Yield batches of frames with ``seq`` above ``after`` until the log is closed.

        The first watcher gets each frame at once; the others at most every 40 ms, in one batch.
        """
        place = after
        me = object()
        self._watchers.append(me)
        try:
            while True:
                if place < len(self.frames):
                    batch = self.frames[place:]
                    place += len(batch)
                    yield batch
                    if not self.closed and self._watchers[0] is not me:
                        await asyncio.sleep(SECOND_WATCHER_S)
                elif self.closed:
                    return
                else:
                    waiter = self._loop.create_future()
                    self._waiters.append(waiter)
                    await waiter
        finally:
            self._watchers.remove(me)
