"""How many tokens a text will be, without asking anyone and without a download.

An estimate: it serves budgets, and usage that a vendor did not report (and is flagged there). Of the
count of Qwen's tokenizer it gives, over whole sets: Chinese 1.03 to 1.14, English 1.12, Python 1.06,
Markdown with tables 0.93, hundreds of languages mixed (mostly rare ones) 0.84. Single texts scatter by a fifth.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

import orjson

CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u3000-\u303f]")
TOKENS_PER_CJK = 0.9
CHARACTERS_PER_TOKEN = 4.0  # Latin letters, digits, code
TOKENS_PER_OTHER = 1.2  # accents, other scripts, emoji
PER_MESSAGE = 4  # role and delimiters
PER_PICTURE = 1_000  # vendors count from 85 to some thousands, by size


def estimate(text: str) -> int:
    """Return the estimated number of tokens; 0 only for an empty text."""
    if text.isascii():
        return math.ceil(len(text) / CHARACTERS_PER_TOKEN)
    rest = CJK.sub("", text)
    plain = len(rest.encode("ascii", "ignore"))
    cjk, other = len(text) - len(rest), len(rest) - plain
    return math.ceil(cjk * TOKENS_PER_CJK + plain / CHARACTERS_PER_TOKEN + other * TOKENS_PER_OTHER)


def estimate_prompt(messages: Iterable[dict[str, Any]], tools: list[dict[str, Any]]) -> int:
    """Estimate what a chat call's prompt costs, schemas of tools included."""
    total = estimate(orjson.dumps(tools).decode()) if tools else 0
    for message in messages:
        total += PER_MESSAGE
        content = message.get("content")
        if isinstance(content, str):
            total += estimate(content)
        elif content is not None:
            total += sum(map(_estimate_part, content if isinstance(content, list) else [content]))
        if calls := message.get("tool_calls"):
            total += estimate(orjson.dumps(calls).decode())
    return total


def _estimate_part(part: Any) -> int:
    if isinstance(part, dict) and part.get("type") in {"image_url", "input_audio", "file"}:
        return PER_PICTURE
    text = part.get("text") if isinstance(part, dict) else None
    return estimate(text if isinstance(text, str) else orjson.dumps(part).decode())
