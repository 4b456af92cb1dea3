"""A ChatRequest as the body that an endpoint reads."""

from collections.abc import Callable
from typing import Any

import orjson

from apps.common.text import storable
from apps.models.chat import ChatRequest, ResolvedModel, Wire
from apps.models.providers import VENDORS, vendor_at

THINKING: dict[str, Callable[[bool], dict[str, Any]]] = {  # how vendors write the switch
    "type": lambda on: {"thinking": {"type": "enabled" if on else "disabled"}},
    "enable": lambda on: {"enable_thinking": on},
    "reasoning": lambda on: {"reasoning": {"enabled": on}},
    "effort": lambda on: {} if on else {"reasoning_effort": "none"},
    "template": lambda on: {"chat_template_kwargs": {"enable_thinking": on}},
}


def chat_body(model: ResolvedModel, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
    """Return the body; what varies from call to call stands last, after the parts that are alike."""
    can = model.capabilities
    body: dict[str, Any] = {"model": model.name}
    if stream:
        body["stream"] = True
        if "stream_usage" in can:
            body["stream_options"] = {"include_usage": True}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if (form := _format(request.response_format, can)) is not None:
        body["response_format"] = form
    if request.logprobs and "logprobs" in can:
        body["logprobs"] = True
        body["top_logprobs"] = request.logprobs
    thinks = model.thinks if request.thinking is None else request.thinking
    if thinks is not None and model.thinking_switch:
        body |= THINKING[model.thinking_switch](thinks)
    if request.tools and "tools" in can:
        if request.tool_choice is not None:
            plain = request.tool_choice in ("auto", "none")
            body["tool_choice"] = request.tool_choice if plain or "forced_tool_choice" in can else "auto"
        if request.parallel_tool_calls is not None and "parallel_tool_calls" in can:
            body["parallel_tool_calls"] = request.parallel_tool_calls
        body["tools"] = request.tools
    if request.cache_key and (name := VENDORS[vendor_at(model.base_url)].cache_key):
        body[name] = request.cache_key
    marked = "cache_breakpoints" in can
    body["messages"] = with_breakpoint(request.messages, request.stable) if marked else request.messages
    return body


def _format(wanted: dict[str, Any] | None, can: frozenset[str]) -> dict[str, Any] | None:
    """Return the strictest form of answer that the model has; nothing where it has none."""
    if wanted is None or (wanted.get("type") == "json_schema" and "json_schema" in can):
        return wanted
    return {"type": "json_object"} if "json_mode" in can else None


def with_breakpoint(messages: list[Wire], stable: int = 0) -> list[Wire]:
    """Mark the end of what stays the same in the system prompt (``stable`` characters; 0: all) as worth caching."""
    if not messages or messages[0]["role"] != "system" or not isinstance(messages[0]["content"], str):
        return messages
    text = messages[0]["content"]
    cut = stable if 0 < stable < len(text) else len(text)
    parts = [{"type": "text", "text": text[:cut], "cache_control": {"type": "ephemeral"}}]
    if text[cut:]:
        parts.append({"type": "text", "text": text[cut:]})
    return [{**messages[0], "content": parts}, *messages[1:]]


def without_breakpoint(messages: list[Wire]) -> list[Wire]:
    """Undo ``with_breakpoint``, for an endpoint that refuses the mark."""
    match messages:
        case [{"content": [{"text": text, "cache_control": _}, *more]} as first, *rest]:
            return [{**first, "content": "".join([text, *(part["text"] for part in more)])}, *rest]
    return messages


def with_reasoning(messages: list[Wire], policy: str, name: str) -> list[Wire]:
    """Send back what the model thought, as ``policy`` says, under the vendor's ``name``; nothing of it elsewhere.

    "tool_turns": with messages that call tools; one that was thought without (of another model) says "".
    "always": with every message of the assistant that was thought. A function of each message alone, so that
    what was sent once is sent again.
    """
    if policy == "never" and not any("reasoning_content" in message for message in messages):
        return messages
    return [_replayed(message, policy, name) for message in messages]


def _replayed(message: Wire, policy: str, name: str) -> Wire:
    thought = message.get("reasoning_content")
    rest = {key: value for key, value in message.items() if key != "reasoning_content"}
    if message["role"] != "assistant" or policy == "never":
        return rest
    if message.get("tool_calls"):
        return {**rest, name: thought or ""}
    return {**rest, name: thought} if policy == "always" and thought else rest


def encode(body: dict[str, Any]) -> bytes:
    """Return the body's bytes. Lone surrogates, which JSON cannot carry, are dropped."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        return orjson.dumps(cleaned(body))


def cleaned(value: Any) -> Any:
    """Return the value with every text in it fit for the wire."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(name)): cleaned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(part) for part in value]
    return value
