"""The border between a conversation and the graph: what a turn is given, and what it gives back.

``runner.run_turn(request, events=..., stop=...)`` takes a TurnRequest and returns a TurnOutcome;
everything in between goes through the EventSink, in the types and shapes that the socket sends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from apps.models.chat import Wire
from apps.workspaces.principals import Principal

ATTACHED = UUID(int=0)  # stands where a passage of a base has the base's id, for passages of attached files


@runtime_checkable
class EventSink(Protocol):
    """Where a turn's events go. Calls are cheap, never block, and keep their order."""

    def emit(self, type: str, data: dict[str, Any]) -> None:  # noqa: A002 (the socket's word)
        """Send one event; ``data`` is JSON and has what the socket's table lists for the type."""

    def token(self, text: str) -> None:
        """Send more of the answer; all texts joined are the stored answer, byte for byte."""


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What the ask frame chose for this turn. Empty ``knowledge_bases``: all that the agent may use."""

    knowledge_bases: tuple[UUID, ...] = ()
    web: bool = False
    graph: bool = False
    language: str | None = None  # "en", "zh-hans"; None: the question's own
    model: UUID | None = None  # in place of the agent's


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that was given to a conversation with one of its questions.

    ``text`` and ``content`` are called only where a turn needs them; both raise a KnowSphereError
    where they cannot give it. Text is as the parsers wrote it, Markdown.
    """

    id: UUID
    name: str
    kind: str  # "image" or "document"
    media_type: str
    number: int  # of the turn with which it came
    characters: int  # of its text; 0 for an image that was not read
    text: Callable[[], Awaitable[str]]
    content: Callable[[], Awaitable[bytes]]  # the file's own bytes, for a model that sees

    def as_event(self) -> dict[str, Any]:
        """Return the shape of the socket's ``attachments`` list."""
        return {"id": str(self.id), "name": self.name, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One question, by whom, to which agent. ``history`` rebuilds earlier turns from rows.

    It is called only where the checkpoint is lost, and returns wire messages (user and assistant),
    oldest first, without this turn's question. ``number`` is the turn's place in its conversation, so
    that a checkpoint which missed a turn is noticed; 0 where nobody counts. ``follows`` is the number of the
    turn before it on its branch, 0 for the first; None: ``number`` - 1. ``attachments`` are all of the
    branch, this turn's too, in the order in which they came. ``ahead`` is what the runner began to read for it
    beside the insert of its row (``runner.read_ahead``).
    """

    turn_id: UUID
    conversation_id: UUID
    workspace_id: UUID
    asker: Principal
    agent_id: UUID | None  # None: the workspace's default
    question: str
    options: AskOptions
    history: Callable[[], Awaitable[list[Wire]]]
    number: int = 0
    follows: int | None = None
    attachments: tuple[Attachment, ...] = ()
    ahead: "asyncio.Future[Any] | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Source:
    """What ``[[cN]]`` stands for in this turn. ``text`` is the passage exactly as it was read."""

    n: int
    kind: str  # "chunk", "attachment" (document_id is the attachment's) or "web"
    document: str
    text: str
    document_id: UUID | None = None
    chunk_id: UUID | None = None
    page: int | None = None
    heading: str = ""
    url: str = ""
    start: int | None = None
    end: int | None = None

    def as_event(self) -> dict[str, Any]:
        """Return the shape of the socket's ``sources`` list."""
        return {
            "n": self.n,
            "kind": self.kind,
            "document_id": str(self.document_id) if self.document_id else None,
            "chunk_id": str(self.chunk_id) if self.chunk_id else None,
            "document": self.document,
            "page": self.page,
            "heading": self.heading,
            "url": self.url,
            "snippet": self.text[:300],
        }


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended. ``text`` is what was sent as tokens; ``sources`` are all that were numbered."""

    status: str  # "succeeded", "stopped", "failed"
    text: str
    sources: tuple[Source, ...] = ()
    usage: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None  # KnowSphereError.as_dict()
    model: str = ""
