"""How many tokens a text will be, without asking anyone and without a download.

An estimate: it serves budgets, and usage that a vendor did not report (and is flagged there). On
mixed prose it lies within about 15 % of common tokenizers, and rather above than below.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

import orjson

CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u3000-\u303f]")
TOKENS_PER_CJK = 0.75
CHARACTERS_PER_TOKEN = 3.8  # Latin letters, digits, code
BYTES_PER_TOKEN = 3.2  # other scripts, emoji
PER_MESSAGE = 4  # role and delimiters


def estimate(text: str) -> int:
    """Return the estimated number of tokens; 0 only for an empty text."""
    if text.isascii():
        return math.ceil(len(text) / CHARACTERS_PER_TOKEN)
    rest = CJK.sub("", text)
    size = len(rest.encode(errors="replace"))
    wide = size - len(rest) if size > len(rest) else 0
    return math.ceil(
        (len(text) - len(rest)) * TOKENS_PER_CJK + (len(rest) / CHARACTERS_PER_TOKEN) + wide / BYTES_PER_TOKEN / 2
    )


def estimate_prompt(messages: Iterable[dict[str, Any]], tools: list[dict[str, Any]]) -> int:
    """Estimate what a chat call's prompt costs, schemas of tools included."""
    total = estimate(orjson.dumps(tools).decode()) if tools else 0
    for message in messages:
        total += PER_MESSAGE
        content = message.get("content")
        if isinstance(content, str):
            total += estimate(content)
        elif content is not None:
            total += estimate(orjson.dumps(content).decode())
        if calls := message.get("tool_calls"):
            total += estimate(orjson.dumps(calls).decode())
    return total
