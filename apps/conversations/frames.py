"""The socket's frames: what a client may send, and what the server sends (docs/websocket.md)."""

import json
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from apps.common.text import NUL_AND_SURROGATES
from apps.conversations import errors

MAX_FRAME_BYTES = 256 * 1024
MAX_QUESTION = 16_000  # characters
MAX_ATTACHMENTS = 10  # of one question

# Every type that the server sends within a turn, with the names that it carries beside
# seq, turn, type and at_ms.
EVENTS: dict[str, tuple[str, ...]] = {
    "turn.queued": ("question", "conversation", "parent", "client_id", "attachments", "waiting"),
    "turn.started": ("question", "conversation", "agent", "model"),
    "step": ("name", "status", "elapsed_ms", "detail"),
    "understanding": ("rewrite_query", "intent", "confidence", "method", "image_description"),
    "handoff": ("turns", "text", "summary_upto_message_id"),
    "plan": ("steps",),
    "reasoning.delta": ("text",),
    "token": ("text",),
    "block": ("index", "html", "end"),
    "tool.started": ("call_id", "name", "arguments"),
    "tool.finished": ("call_id", "name", "summary", "ok", "elapsed_ms", "ref", "refused"),
    "sources": ("sources",),
    "usage": ("prompt", "completion", "cached", "prefix_reused", "cost"),
    "turn.finished": ("status", "message", "error", "last_seq"),
}


class _Frame(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Ask(_Frame):
    """Ask a question. ``client_id`` makes a repeated frame harmless.

    ``parent``: the turn that the question follows, where it is not the newest; the conversation's own
    id for its beginning. ``regenerate``: the turn whose question is to be answered again, in its place.
    """

    type: Literal["ask"] = "ask"
    text: str = ""
    client_id: str = Field(min_length=1, max_length=64)
    knowledge_bases: list[Annotated[UUID, Field(strict=False)]] = Field(default=[], max_length=100)
    web: bool = False
    graph: bool = False
    language: str | None = Field(default=None, pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$")
    attachments: list[Annotated[UUID, Field(strict=False)]] = Field(default=[], max_length=MAX_ATTACHMENTS)
    skills: list[Any] = []
    parent: Annotated[UUID, Field(strict=False)] | None = None
    regenerate: Annotated[UUID, Field(strict=False)] | None = None
    model: Annotated[UUID, Field(strict=False)] | None = None


class Stop(_Frame):
    """Stop a turn, or whichever is running."""

    type: Literal["stop"]
    turn: Annotated[UUID, Field(strict=False)] | None = None


class Resume(_Frame):
    """Send a turn's events above ``after`` and go on."""

    type: Literal["resume"]
    turn: Annotated[UUID, Field(strict=False)]
    after: int = Field(default=0, ge=0, le=2**31 - 1)


class Ping(_Frame):
    """Ask for a pong."""

    type: Literal["ping"]


Frame = Ask | Stop | Resume | Ping
_ADAPTER: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="type")])


def parse(text: str | None) -> Frame:
    """Return the frame that a socket's text holds.

    Raises:
        FrameTooLarge, FrameRefused, InvalidCharacters, UnsupportedOption, EmptyQuestion,
        QuestionTooLong: it cannot be taken; the socket stays open.
    """
    if text is None:
        raise errors.FrameRefused(reason="binary")
    if len(text) > MAX_FRAME_BYTES:
        raise errors.FrameTooLarge(limit_kb=MAX_FRAME_BYTES // 1024)
    try:
        content = orjson.loads(text)
    except ValueError:
        raise _unreadable(text) from None
    try:
        frame = _ADAPTER.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        reason = f"{place}: {first['msg']}" if place else first["msg"]
        raise errors.FrameRefused(reason=reason) from None
    if isinstance(frame, Ask):
        check_ask(frame)
    return frame


def check_ask(ask: Ask) -> None:
    """Raise what is wrong with a question, whichever way it came."""
    if NUL_AND_SURROGATES.search(ask.text) or NUL_AND_SURROGATES.search(ask.client_id):
        raise errors.InvalidCharacters
    if not ask.text.strip() and ask.regenerate is None:
        raise errors.EmptyQuestion
    if len(ask.text) > MAX_QUESTION:
        raise errors.QuestionTooLong(limit=MAX_QUESTION)
    if ask.skills:
        raise errors.UnsupportedOption(option="skills")


def _unreadable(text: str) -> errors.FrameRefused | errors.InvalidCharacters:
    """Tell half a character, which orjson refuses, from text that is not JSON at all."""
    try:
        content = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return errors.FrameRefused(reason="not JSON")
    return errors.InvalidCharacters() if NUL_AND_SURROGATES.search(content) else errors.FrameRefused(reason="not JSON")
