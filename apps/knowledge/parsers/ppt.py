"""Old PowerPoint (.ppt): the text of slides and notes from the binary file's records ([MS-PPT])."""

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO

import olefile

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.encrypted import unlocked
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

DOCUMENT, SLIDE, NOTES, MASTER, LISTS, PERSIST = 1000, 1006, 1008, 1016, 4080, 1011
HEADER, WIDE, NARROW, WORDS = 3999, 4000, 4008, 4026
TITLES = (0, 6)  # kinds of text
ENCRYPTED_TOKEN = 0xF3D1C4DF
MOST_RECORDS = 2_000_000
DEEPEST = 40
BREAKS = str.maketrans({"\r": "\n", "\x0b": "\n"})


def parse_ppt(file: BinaryIO, *, password: str = "") -> Parsed:
    """Read an old presentation.

    Raises:
        ParseFailure: password_required, broken_file, empty_file.
    """
    data = unlocked(file.read(), password)
    try:
        ole = olefile.OleFileIO(io.BytesIO(data))
        user = ole.openstream("Current User").read() if ole.exists("Current User") else b""
        if len(user) >= 16 and struct.unpack_from("<I", user, 12)[0] == ENCRYPTED_TOKEN:
            raise ParseFailure("password_required")
        stream = ole.openstream("PowerPoint Document").read()
    except (OSError, ValueError, struct.error) as error:
        raise ParseFailure("broken_file", reason="no presentation in it") from error
    slides = _slides(stream)
    markdown, pages = "", []
    for number, blocks in enumerate(slides, start=1):
        text = tidy(legible("\n\n".join(blocks)))
        separator = "\n\n" if markdown else ""
        pages.append((number, len(markdown) + len(separator)))
        markdown += separator + text
    if not any(len(blocks) > 1 or not blocks[0].startswith("## Slide ") for blocks in slides):
        raise ParseFailure("empty_file")
    return Parsed(markdown, pages, {"page_count": len(slides)})


def _slides(stream: bytes) -> list[list[str]]:
    """Return each slide's blocks: the outline's text in its order, then that of boxes drawn on slides."""
    slides: list[list[str]] = []
    drawn: list[list[str]] = []
    notes: list[list[str]] = []
    kind, where, listing = -1, "", 0
    for record, instance, body, container in _records(stream):
        if record == DOCUMENT:  # a quick save appends the whole again, and the last one counts
            slides, where = [], ""
        elif record == LISTS:
            listing, where = instance, "list"
        elif record in (DOCUMENT, SLIDE, NOTES, MASTER):
            where = {SLIDE: "slide", NOTES: "notes", MASTER: "master"}[record]
            kind = -1
            if record == SLIDE:
                drawn.append([])
            elif record == NOTES:
                notes.append([])
        elif record == PERSIST and where == "list" and listing == 0:
            slides.append([])
            kind = -1
        elif record == HEADER and len(body) >= 4:
            kind = struct.unpack_from("<I", body)[0]
        elif record in (WIDE, NARROW) and not container:
            text = _words(body, record).strip()
            if not text:
                continue
            if where == "list" and listing == 0 and slides:
                slides[-1].append(f"## {' '.join(text.split())}" if kind in TITLES else text)
            elif where == "slide" and drawn:
                drawn[-1].append(text)
            elif where == "notes" and notes:
                notes[-1].append("\n".join(f"> {line}" for line in text.split("\n")))
    count = max(len(slides), len(drawn))
    found = []
    for at in range(count):
        blocks = [*(slides[at] if at < len(slides) else ()), *(drawn[at] if at < len(drawn) else ())]
        titled = blocks and blocks[0].startswith("## ")
        found.append(blocks if titled else [f"## Slide {at + 1}", *blocks])
    rest = [block for blocks in notes for block in blocks if block != "> *"]
    if rest and found:
        found[-1].extend(rest)
    return found


def _words(body: bytes, record: int) -> str:
    """Return a text atom's words; the narrow kind holds the low half of each character."""
    if record == WIDE:
        return body.decode("utf-16-le", "replace").translate(BREAKS)
    text = body.decode("latin-1")
    return (text if body.isascii() or len(body) < 20 else decode(body)[0]).translate(BREAKS)


def _records(data: bytes) -> Iterator[tuple[int, int, bytes, bool]]:
    """Yield (kind, instance, body, whether it holds others), each container before what is in it."""
    ends = [len(data)]
    at, count = 0, 0
    while at + 8 <= len(data) and count < MOST_RECORDS:
        while len(ends) > 1 and at >= ends[-1]:
            ends.pop()
        head, kind, size = struct.unpack_from("<HHI", data, at)
        container = head & 0xF == 0xF
        at, count = at + 8, count + 1
        if container:
            yield kind, head >> 4, b"", True
            if len(ends) >= DEEPEST:
                raise ParseFailure("broken_file", reason="nested too deeply")
            ends.append(min(at + size, ends[-1]))
        else:
            yield kind, head >> 4, data[at : at + size], False
            at += size
