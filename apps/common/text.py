"""Text from outside, made safe for the database and for the eye."""

import re
from uuid import UUID

NUL_AND_SURROGATES = re.compile("[\x00\ud800-\udfff]")
INVISIBLE = re.compile(
    "[\x01-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]"
)


def storable(text: str) -> str:
    """Drop what PostgreSQL refuses: NUL and lone surrogates. For chat text, names, arguments."""
    return NUL_AND_SURROGATES.sub("", text) if NUL_AND_SURROGATES.search(text) else text


def legible(text: str) -> str:
    """Drop also control, zero-width and direction-override characters; layout stays.

    Zero-width joiner and non-joiner stay: Persian, Hindi and emoji need them.
    """
    text = storable(text)
    return INVISIBLE.sub("", text) if INVISIBLE.search(text) else text


def display_name(name: str, *, limit: int = 255) -> str:
    """Return a file's or thing's name as it may be shown: one line, no path, no tricks.

    A name that is too long keeps its extension. It is never used as a path (keys are UUIDs).
    """
    name = re.sub(r"\s+", " ", legible(name.replace("\\", "/").rsplit("/", 1)[-1])).strip(" .") or "unnamed"
    if len(name) <= limit:
        return name
    stem, dot, extension = name.rpartition(".")
    if not dot or len(extension) > 16:
        return name[: limit - 1] + "…"
    return f"{stem[: limit - len(extension) - 2]}….{extension}"


def whole(text: str, *, most: int = 2**31 - 1) -> int | None:
    """Return the number that an address's parameter holds, None if it is no whole number from 0 to ``most``."""
    plain = text.isascii() and text.isdecimal() and len(text) <= 10
    return int(text) if plain and int(text) <= most else None


def identifier(text: str) -> UUID | None:
    """Return the id that an address's parameter holds, None if it is none."""
    try:
        return UUID(text) if len(text) == 36 else None
    except ValueError:
        return None
