"""What single endpoints do not accept, learned from their own refusal and remembered.

OpenAI-compatible endpoints differ in the parameters that they know, and in those that exclude each
other. A call that is refused *because of* an optional parameter is sent once more without it, and
later calls of this process leave it out at once.
"""

import re
from typing import Any

from apps.models.chat import ResolvedModel
from apps.models.requests import with_reasoning, without_breakpoint

# parameter -> (words in a refusal that mean it, what to send instead; None: nothing)
OPTIONAL = {
    "stream_options": ("stream_options|include_usage", None),
    "top_logprobs": ("logprobs", None),
    "logprobs": ("logprobs", None),
    "response_format": ("response_format|json_schema|json_object|json mode", None),
    "tool_choice": ("tool_choice|thinking mode", "auto"),
    "parallel_tool_calls": ("parallel_tool_calls", None),
    "temperature": ("temperature", None),
    "encoding_format": ("encoding_format", None),
    "thinking": (r"\bthinking\b(?! mode)", None),
    "enable_thinking": ("enable_thinking", None),
    "reasoning": (r"\breasoning\b(?!_content)", None),
    "reasoning_effort": ("reasoning_effort|think value", None),
    "chat_template_kwargs": ("chat_template_kwargs", None),
}
# habits that are not a parameter
SCHEMA = "refuses_schemas"  # but may know plain JSON mode
STREAM_TO_THINK = "thinks_only_streamed"  # whole answers have to say that they are without thinking
MARKS = "refuses_breakpoints"
WANTS_REASONING, NO_REASONING = "wants_reasoning_back", "refuses_reasoning"

_refused: dict[tuple[str, str], set[str]] = {}


def _key(model: ResolvedModel) -> tuple[str, str]:
    return model.base_url, model.name


def refuses(model: ResolvedModel, parameter: str) -> bool:
    """Say whether this endpoint has refused a parameter before."""
    return parameter in _refused.get(_key(model), ())


def fitted(model: ResolvedModel, body: dict[str, Any]) -> dict[str, Any]:
    """Return a body as this model accepts it, by what it has refused before; the order of keys stays.

    Fit anew from the same body after ``learn``: what was taken out may be wanted after all.
    """
    refused = _refused.get(_key(model), set())
    fits = {new: value for name in body for new, value in _replaced(name, body[name], refused)}
    messages = fits.pop("messages", None)
    if messages is None:
        return fits
    if STREAM_TO_THINK in refused and not body.get("stream"):
        fits["enable_thinking"] = False
    if MARKS in refused:
        messages = without_breakpoint(messages)
    fits["messages"] = with_reasoning(messages, _policy(model, refused), model.reasoning_field)
    return fits


def learn(model: ResolvedModel, body: dict[str, Any], words: str) -> bool:
    """Take a refusal's words; True if it is about something optional of ``body``, so try again."""
    found = _about_habits(model, body, words) or {
        name
        for name, (pattern, instead) in OPTIONAL.items()
        if name in body and body[name] != instead and re.search(pattern, words, re.I)
    }
    if "max_tokens" in body and "max_completion_tokens" in words:
        found.add("max_tokens")
    if not found:
        return False
    _refused.setdefault(_key(model), set()).update(found)
    return True


def _about_habits(model: ResolvedModel, body: dict[str, Any], words: str) -> set[str]:
    known = _refused.get(_key(model), set())
    messages = body.get("messages") or []
    if re.search("reasoning_content|reasoning_details", words):
        sent = any(model.reasoning_field in message for message in messages)
        found = NO_REASONING if sent else WANTS_REASONING
        return set() if known & {NO_REASONING, WANTS_REASONING} else {found}
    if "cache_control" in words and MARKS not in known:
        return {MARKS}
    if "enable_thinking" in words and not body.get("stream") and body.get("enable_thinking") is not False:
        return {STREAM_TO_THINK}
    form = body.get("response_format")
    if (
        isinstance(form, dict)
        and form.get("type") == "json_schema"
        and re.search(OPTIONAL["response_format"][0], words)
    ):
        return {SCHEMA}
    return set()


def _policy(model: ResolvedModel, refused: set[str]) -> str:
    if NO_REASONING in refused:
        return "never"
    return "tool_turns" if WANTS_REASONING in refused else model.reasoning_replay


def remember(model: ResolvedModel, habit: str, holds: bool) -> None:
    """Note a habit that is not a parameter, such as "opened_thinking"."""
    known = _refused.setdefault(_key(model), set())
    known.add(habit) if holds else known.discard(habit)


def forget() -> None:
    """Forget everything, as after a model's settings changed."""
    _refused.clear()


def _replaced(name: str, value: Any, refused: set[str]) -> list[tuple[str, Any]]:
    if name == "response_format" and SCHEMA in refused and value.get("type") == "json_schema":
        value = {"type": "json_object"}
    if name not in refused:
        return [(name, value)]
    if name == "max_tokens":
        return [("max_completion_tokens", value)]
    instead = OPTIONAL[name][1]
    return [] if instead is None else [(name, instead)]
