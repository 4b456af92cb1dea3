"""What a running turn writes into: events to the log, tokens to the log and to the answer's blocks."""

from typing import Any

from apps.agents.turn import Source, TurnRequest
from apps.common.text import storable
from apps.conversations import rows
from apps.conversations.blocks import BlockStream
from apps.conversations.log import TurnLog
from apps.conversations.rendering import AnswerRenderer, anchor_of

ASKS_A_MODEL = {"generate", "agent"}  # nodes that begin by it


class TurnSink:
    """The EventSink of one turn. ``text`` is the answer so far, exactly as its tokens were sent."""

    def __init__(self, log: TurnLog, request: TurnRequest, place: dict[str, Any] | None = None) -> None:
        """``place`` is what ``turn.queued`` says besides: where in the conversation, by whose frame."""
        self._log = log
        asked = {"question": request.question, "conversation": str(request.conversation_id)}
        agent = str(request.agent_id) if request.agent_id else None
        self._started: dict[str, Any] | None = {**asked, "agent": agent, "model": None}
        self._texts: list[str] = []
        self._blocks = BlockStream()
        self._renderer = AnswerRenderer({}, anchor=anchor_of(request.turn_id))
        self._sources: dict[int, Source] = {}
        self._index = 0
        self._end = 0  # of the closed blocks, in UTF-16 units, as browsers count
        log.emit("turn.queued", {**asked, **(place or {})})

    @property
    def text(self) -> str:
        """The answer so far, with what still waits to be sent."""
        return "".join(self._texts)

    def sources(self) -> tuple[Source, ...]:
        """Return what the ``sources`` events named, for a runner that was cut off."""
        return tuple(self._sources.values())

    def emit(self, type: str, data: dict[str, Any]) -> None:  # noqa: A002 (the socket's word)
        """Send one event; ``sources`` are also what the answer's markers will name.

        A runner that knows agent and model says so in a ``turn.started`` of its own, before all else.
        """
        if type == "turn.started":
            self._begin(data)
            return
        self._begin()
        if type == "token":
            self.token(str(data["text"]))
        elif type == "reasoning.delta":
            self._log.delta(type, storable(str(data["text"])))
        else:
            if type == "sources":
                self._sources.update({item["n"]: rows.source_of_event(item) for item in data["sources"]})
                self._renderer.sources.update(self._sources)
            self._log.emit(type, data)
            if type == "step" and data.get("name") in ASKS_A_MODEL:
                self._log.send_soon()

    def token(self, text: str) -> None:
        """Send more of the answer, and the blocks that it closes."""
        text = storable(text)
        if not text:
            return
        self._begin()
        self._texts.append(text)
        self._log.delta("token", text)
        for block in self._blocks.feed(text):
            self._send_block(block)

    def finish(self) -> None:
        """Send the blocks that are still open; no token follows."""
        self._begin()
        self._log.flush()
        for block in self._blocks.finish():
            self._send_block(block)

    def _begin(self, known: dict[str, Any] | None = None) -> None:
        if self._started is not None:
            started, self._started = {**self._started, **(known or {})}, None
            self._log.emit("turn.started", started)

    def _send_block(self, source: str) -> None:
        html = self._renderer.render(source)
        self._end += len(source.encode("utf-16-le")) // 2
        self._log.emit("block", {"index": self._index, "html": html, "end": self._end})
        self._index += 1
