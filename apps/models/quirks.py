"""What an endpoint turned out not to accept, learnt from its own refusal and remembered.

OpenAI-compatible endpoints differ in the parameters that they know, and in those that exclude each
other. A call that is refused *because of* an optional parameter is sent once more without it, and
later calls of this process leave it out at once.
"""

import re
from typing import Any

from apps.models.chat import ResolvedModel

# parameter -> (words in a refusal that mean it, what to send instead; None: nothing)
OPTIONAL = {
    "stream_options": ("stream_options|include_usage", None),
    "top_logprobs": ("logprobs", None),
    "logprobs": ("logprobs", None),
    "response_format": ("response_format|json_schema|json_object", None),
    "tool_choice": ("tool_choice|thinking mode", "auto"),
    "parallel_tool_calls": ("parallel_tool_calls", None),
    "temperature": ("temperature", None),
    "encoding_format": ("encoding_format", None),
}
_refused: dict[tuple[str, str], set[str]] = {}


def _key(model: ResolvedModel) -> tuple[str, str]:
    return model.base_url, model.name


def refuses(model: ResolvedModel, parameter: str) -> bool:
    """Say whether this endpoint has refused a parameter before."""
    return parameter in _refused.get(_key(model), ())


def fitted(model: ResolvedModel, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body without what this model has refused before; the order of keys stays."""
    refused = _refused.get(_key(model))
    if not refused:
        return body
    return {new: value for name in body for new, value in _replaced(name, body[name], refused)}


def learn(model: ResolvedModel, body: dict[str, Any], words: str) -> bool:
    """Take a refusal's words; True if it is about an optional parameter of ``body``, so try again."""
    found = {name for name, (pattern, _) in OPTIONAL.items() if name in body and re.search(pattern, words, re.I)}
    found -= {name for name in found if body[name] == OPTIONAL[name][1]}
    if "max_tokens" in body and "max_completion_tokens" in words:
        found.add("max_tokens")
    if not found:
        return False
    _refused.setdefault(_key(model), set()).update(found)
    return True


def remember(model: ResolvedModel, habit: str, holds: bool) -> None:
    """Note a habit that is not a parameter, such as "opened_thinking"."""
    known = _refused.setdefault(_key(model), set())
    known.add(habit) if holds else known.discard(habit)


def forget() -> None:
    """Forget everything, as after a model's settings changed."""
    _refused.clear()


def _replaced(name: str, value: Any, refused: set[str]) -> list[tuple[str, Any]]:
    if name not in refused:
        return [(name, value)]
    if name == "max_tokens":
        return [("max_completion_tokens", value)]
    instead = OPTIONAL[name][1]
    return [] if instead is None else [(name, instead)]
