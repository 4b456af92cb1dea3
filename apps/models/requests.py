"""A ChatRequest as the body that an endpoint reads."""

from typing import Any

import orjson

from apps.common.text import storable
from apps.models.chat import ChatRequest, ResolvedModel


def chat_body(model: ResolvedModel, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
    """Return the body; what varies from call to call stands last, after the parts that are alike."""
    body: dict[str, Any] = {"model": model.name}
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.response_format is not None:
        body["response_format"] = request.response_format
    if request.logprobs:
        body["logprobs"] = True
        body["top_logprobs"] = request.logprobs
    if request.tool_choice is not None and request.tools:
        body["tool_choice"] = request.tool_choice
    if request.tools:
        body["tools"] = request.tools
    body["messages"] = request.messages
    return body


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
