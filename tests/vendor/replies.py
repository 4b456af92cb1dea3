"""What the vendor says: one Reply an answer, faults included."""

import json
import re
import threading
from dataclasses import dataclass, field
from typing import Any

PIECE = re.compile(r"\s*[\u3400-\u9fff\u3000-\u303f\uff00-\uffef]|\s*[^\s\u3400-\u9fff]+|\s+")


def call(name: str, arguments: Any = None, call_id: str = "") -> dict[str, Any]:
    """One tool call as the wire has it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return {"id": call_id or f"call_{name}", "type": "function", "function": {"name": name, "arguments": text}}


@dataclass
class Reply:
    """One answer. The same Reply serves a streamed and a whole call.

    Faults: ``status`` (with ``headers``, ``error``) before anything; ``stall_after``, ``cut_after`` and
    ``error_after`` a number of pieces; ``hold`` waits for the test before piece ``hold_after``.
    ``chunks`` replaces the stream by JSON values of your own, ``raw`` by bytes of your own, one
    write each.
    """

    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    reasoning: str = ""
    pieces: list[str] | None = None
    finish: str | None = None  # None: "tool_calls" or "stop"; "": never sent
    usage: dict[str, Any] | None = field(default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5})
    per_second: float = 0
    clock: bool = False  # each piece of text is sent as the moment of its sending
    logprobs: dict[str, float] | None = None  # alternatives of the first token -> ln p
    chunks: list[Any] | None = None
    raw: list[bytes] | None = None
    done: bool = True  # whether the stream ends with [DONE]

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: Any = "scripted failure"
    delay: float = 0  # seconds before the first byte
    stall_after: int | None = None
    cut_after: int | None = None
    error_after: int | None = None
    hold: threading.Event | None = None
    hold_after: int = 0

    vectors: list[Any] | None = None  # embeddings, in the order of the inputs
    body: Any = None  # the whole answer of a call that is not streamed; text with a ``status``: as it is

    def split(self) -> list[str]:
        """The text in pieces of about a token."""
        return self.pieces if self.pieces is not None else PIECE.findall(self.text)

    @property
    def finish_reason(self) -> str:
        if self.finish is not None:
            return self.finish
        return "tool_calls" if self.tool_calls else "stop"

    def stream(self) -> list[Any]:
        """The JSON values of a streamed answer."""
        if self.chunks is not None:
            return self.chunks
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": piece} for piece in PIECE.findall(self.reasoning)]
        deltas += [{"content": piece} for piece in self.split()]
        for index, one in enumerate(self.tool_calls):
            head = {**one, "index": index, "function": {**one["function"], "arguments": ""}}
            tail = {"index": index, "function": {"arguments": one["function"]["arguments"]}}
            deltas += [{"tool_calls": [head]}, {"tool_calls": [tail]}]
        values: list[Any] = [chunk(delta) for delta in deltas]
        if self.finish_reason:
            values.append(chunk({}, self.finish_reason))
        if self.usage is not None:
            values.append({**chunk({}), "choices": [], "usage": self.usage})
        return values

    def whole(self) -> Any:
        """The JSON value of an answer that is not streamed."""
        if self.body is not None:
            return self.body
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = self.tool_calls
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self.finish_reason or None}
        if self.logprobs is not None:
            top = [{"token": token, "logprob": value, "bytes": None} for token, value in self.logprobs.items()]
            choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        return {"id": "chat-1", "object": "chat.completion", "created": 0, "choices": [choice], "usage": self.usage}


def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    """One streamed value around a delta."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chat-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]}
