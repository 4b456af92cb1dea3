"""Hangul documents (.hwp, version 5): the text of their paragraphs."""

import io
import re
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import olefile

from apps.common.text import legible
from apps.knowledge.parsers.packages import LARGEST_ENTRY
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

PARAGRAPH = 67  # the record that holds a paragraph's text
COMPRESSED, LOCKED = 1, 2
ALONE = frozenset({0, 10, 13, *range(24, 32)})  # control characters of one place; others take eight
TAB, BREAKS = 9, frozenset({10, 13})


def parse_hwp(file: BinaryIO) -> Parsed:
    """Read a Hangul document.

    Raises:
        ParseFailure: password_required, broken_file, suspicious_file, empty_file.
    """
    try:
        ole = olefile.OleFileIO(io.BytesIO(file.read()))
        flags = struct.unpack_from("<I", ole.openstream("FileHeader").read(), 36)[0]
        if flags & LOCKED:
            raise ParseFailure("password_required")
        sections = sorted(
            (entry for entry in ole.listdir() if entry[0] == "BodyText"),
            key=lambda entry: int(re.sub(r"\D", "", entry[-1]) or 0),
        )
        data = [_inflated(ole.openstream(entry).read(), flags) for entry in sections]
    except (OSError, ValueError, struct.error, zlib.error) as error:
        raise ParseFailure("broken_file", reason="no Hangul document in it") from error
    paragraphs = (_text(body) for section in data for kind, body in _records(section) if kind == PARAGRAPH)
    markdown = tidy(legible("\n\n".join(text for text in paragraphs if text.strip()))).strip()
    if not markdown:
        raise ParseFailure("empty_file")
    return Parsed(markdown)


def _inflated(data: bytes, flags: int) -> bytes:
    if not flags & COMPRESSED:
        return data
    inflater = zlib.decompressobj(-15)
    found = inflater.decompress(data, LARGEST_ENTRY)
    if inflater.unconsumed_tail:
        raise ParseFailure("suspicious_file", reason="inflates")
    return found


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        head = struct.unpack_from("<I", data, at)[0]
        at, size = at + 4, head >> 20
        if size == 0xFFF:
            if at + 4 > len(data):
                return
            size = struct.unpack_from("<I", data, at)[0]
            at += 4
        yield head & 0x3FF, data[at : at + size]
        at += size


def _text(body: bytes) -> str:
    """Return a paragraph's letters without what its control characters carry."""
    units = struct.unpack(f"<{len(body) // 2}H", body[: len(body) // 2 * 2])
    kept, at = [], 0
    while at < len(units):
        unit = units[at]
        if unit >= 32:
            kept.append(unit)
        elif unit == TAB or unit in BREAKS:
            kept.append(TAB if unit == TAB else 10)
        at += 1 if unit >= 32 or unit in ALONE else 8
    return struct.pack(f"<{len(kept)}H", *kept).decode("utf-16-le", "replace")
