"""From the values of one chat stream to ChatDeltas."""

from typing import Any

from django.utils.translation import gettext as _

from apps.models.chat import ChatDelta, Usage
from apps.models.wire.reasoning import ThinkFilter
from apps.models.wire.tool_calls import ToolCallAssembler

FINISHED = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}
LIMITS = {"max_tokens", "model_length", "length"}
MOST_TOKENS = 10**8  # no call has as many; a vendor that says so said nothing
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


class Refused(Exception):
    """The vendor's filter ended the answer."""


class Broken(Exception):
    """The stream says that it failed, or ended without saying that it is finished. ``status``: HTTP's, or 0."""

    def __init__(self, words: Any, status: int = 0) -> None:
        super().__init__(words)
        self.words = words
        self.status = status


class DeltaReader:
    """Reads one stream's values; keeps usage, the finish reason and unfinished tool calls."""

    def __init__(self, *, opened: bool = False) -> None:
        self.think = ThinkFilter(opened=opened)
        self.calls = ToolCallAssembler()
        self.finish_reason = ""
        self.usage: Usage | None = None
        self._reasons_beside = False  # reasoning has a field of its own, so tags are just text

    def read(self, value: Any) -> ChatDelta | None:
        """Take one value; return what it says, or None. Raises Broken."""
        if not isinstance(value, dict):
            return None
        if error := value.get("error"):
            raise Broken(value, _status(error))
        if usage := read_usage(value.get("usage")):
            self.usage = usage  # the last word counts; some send a running count with every chunk
        choices = value.get("choices")
        choice: Any = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            if value.get("object") == "error" or (choices is None and "message" in value and "code" in value):
                raise Broken(value, _status(value))
            return None
        if usage := read_usage(choice.get("usage")):
            self.usage = usage
        delta: Any = choice.get("delta") or choice.get("message")
        said = self._read_delta(delta) if isinstance(delta, dict) else None
        if reason := choice.get("finish_reason"):
            self._finish(str(reason))
        return said

    def end(self) -> tuple[ChatDelta | None, list[dict[str, Any]] | None, str]:
        """The stream is over: what was held back, complete tool calls, the reason. Raises Broken."""
        text, reasoning = self.think.finish()
        rest = ChatDelta(text=text, reasoning=reasoning) if text or reasoning else None
        if not self.finish_reason:
            raise Broken(_("it closed before it was finished"))
        if self.finish_reason == "length" or not self.calls:
            return rest, None, "stop" if self.finish_reason == "tool_calls" else self.finish_reason
        return rest, self.calls.calls(), "tool_calls"

    def _read_delta(self, delta: dict[str, Any]) -> ChatDelta | None:
        if "tool_calls" in delta:
            self.calls.feed(delta["tool_calls"])
        reasoning = ""
        for name in REASONING_FIELDS:
            if name in delta and (reasoning := _text(delta[name])):
                break
        self._reasons_beside = self._reasons_beside or bool(reasoning)
        text = _text(delta.get("content"))
        if text and not self._reasons_beside:
            text, inside = self.think.feed(text)
            reasoning += inside
        return ChatDelta(text=text, reasoning=reasoning) if text or reasoning else None

    def _finish(self, reason: str) -> None:
        if reason in LIMITS:
            self.finish_reason = "length"
        elif reason in {"content_filter", "sensitive", "safety", "SAFETY"}:
            raise Refused(_("the vendor's content filter stopped the answer"))
        elif reason in {"error", "network_error", "insufficient_system_resource", "abort"}:
            raise Broken(_("the vendor ended it with “%(reason)s”") % {"reason": reason})
        else:
            self.finish_reason = FINISHED.get(reason, "stop")


def read_usage(usage: Any) -> Usage | None:
    """Return the tokens that a vendor reports, or None where it reports none."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = read_count(usage.get("prompt_tokens")), read_count(usage.get("completion_tokens"))
    if not prompt and not completion:
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    cached = cached or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")
    return Usage(prompt=prompt, completion=completion, cached=min(read_count(cached), prompt))


def _text(content: Any) -> str:
    """Return content that is text, or a list of parts with text; nothing for anything else."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def read_count(value: Any) -> int:
    """Return a number of tokens; 0 for what is none, or cannot be true."""
    return int(value) if isinstance(value, int | float) and 0 < value <= MOST_TOKENS else 0


def _status(error: Any) -> int:
    """Read an HTTP status from an error's code; vendors put numbers of their own, digits or words there."""
    for name in ("code", "status", "http_status") if isinstance(error, dict) else ():
        value = error.get(name)
        if (isinstance(value, int) or (isinstance(value, str) and value.isdigit())) and 400 <= int(value) <= 599:
            return int(value)
        if isinstance(value, str) and ("rate" in value.lower() or "overload" in value.lower()):
            return 429
    return 0
