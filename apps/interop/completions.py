"""An answer of ours in the shapes of chat completions. Plain values: no rows, no requests."""

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError

MARKER = re.compile(r"\[\[c(\d+)\]\]")


class AnswerFailed(KnowSphereError):
    """The turn ended without an answer; the code and the sentence are those of its own error."""

    code = "answer_failed"
    status = 502
    retryable = True
    user_message = _("The answer could not be written to its end. What was written so far is kept; ask again.")

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__()
        self.error = error

    def as_dict(self) -> dict[str, Any]:
        """Return the turn's error."""
        return {**super().as_dict(), **self.error}


@dataclass
class Answer:
    """What a turn's events have brought so far."""

    turn_id: UUID
    conversation_id: UUID
    model: str
    slug: str
    text: str = ""
    sources: dict[int, dict[str, Any]] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> None:
        """Add an event of the turn."""
        match event["type"]:
            case "token":
                self.text += event["text"]
            case "sources":
                self.sources.update({source["n"]: source for source in event["sources"]})
            case "usage":
                sent, written = event.get("prompt") or 0, event.get("completion") or 0
                details = {"cached_tokens": event.get("cached") or 0}
                self.usage = {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}
                self.usage |= {"prompt_tokens_details": details}  # type: ignore[dict-item]
            case "turn.finished":
                self.end = event

    def require_success(self) -> None:
        """Raise AnswerFailed where the turn ended without an answer."""
        if self.end.get("status") not in ("succeeded", "stopped", "waiting"):
            raise AnswerFailed(self.end.get("error") or {"code": "turn_interrupted"})

    def annotations(self) -> list[dict[str, Any]]:
        """Return where the text cites what, each marker once."""
        found = []
        for marker in MARKER.finditer(self.text):
            source = self.sources.get(int(marker[1]))
            if source is None:
                continue
            page = reverse("conversations:show-source", args=[self.slug, self.turn_id, source["n"]])
            citation = {
                "n": source["n"],
                "start_index": marker.start(),
                "end_index": marker.end(),
                "title": source["document"] or source["url"],
                "url": source["url"] or f"{settings.SITE_URL}{page}",
                "document_id": source["document_id"],
                "chunk_id": source["chunk_id"],
                "page": source["page"],
            }
            found.append({"type": "url_citation", "url_citation": citation})
        return found

    def completion(self, created: int) -> dict[str, Any]:
        """Return the whole answer."""
        message = {"role": "assistant", "content": self.text, "refusal": None, "annotations": self.annotations()}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head(created, "chat.completion"), "choices": [choice], "usage": self.usage or None}

    def chunk(self, created: int, delta: dict[str, Any], *, finish: str | None = None) -> dict[str, Any]:
        """Return a piece of the answer."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head(created, "chat.completion.chunk"), "choices": [choice]}

    def _head(self, created: int, kind: str) -> dict[str, Any]:
        ours = {"conversation": str(self.conversation_id), "turn": str(self.turn_id)}
        return {
            "id": f"chatcmpl-{self.turn_id.hex}",
            "object": kind,
            "created": created,
            "model": self.model,
            "knowsphere": ours,
        }


def error(ours: dict[str, Any], status: int) -> dict[str, Any]:
    """Return an error as clients of chat completions read it, with our own shape beside it."""
    kind = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    theirs = {"message": ours["message"], "type": kind.get(status, fallback), "param": None, "code": ours["code"]}
    return {"error": theirs, **ours}
