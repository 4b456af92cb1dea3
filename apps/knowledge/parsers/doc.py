"""Old Word (.doc): the text of the piece table, with notes and the cells of tables, from the binary file ([MS-DOC])."""

import io
import re
import struct
from typing import BinaryIO

import olefile

from apps.common.text import legible
from apps.knowledge.parsers.encrypted import unlocked
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

ENCRYPTED, SECOND_TABLE = 0x0100, 0x0200
CLX = 33  # which pair of (offset, length) in the file's head leads to the piece table
NARROW = 0x40000000
MOST_PIECES = 1_000_000
FIELD_CODE = re.compile("\x13[^\x13\x14\x15]{0,5000}(?:\x14|(?=\x15))")
GONE = {ord(mark): None for mark in "\x01\x02\x03\x04\x05\x08\x14\x15\x1f"}
CELL_ENDS = re.compile("\x07{2,}")


def parse_doc(file: BinaryIO, *, password: str = "") -> Parsed:
    """Read an old Word file.

    Raises:
        ParseFailure: password_required, broken_file, empty_file.
    """
    data = unlocked(file.read(), password)
    try:
        ole = olefile.OleFileIO(io.BytesIO(data))
        head = ole.openstream("WordDocument").read()
        flags = struct.unpack_from("<H", head, 10)[0]
        if flags & ENCRYPTED:
            raise ParseFailure("password_required")
        table = ole.openstream("1Table" if flags & SECOND_TABLE else "0Table").read()
        text = _text(head, table)
    except (OSError, ValueError, struct.error, IndexError) as error:
        raise ParseFailure("broken_file", reason="no Word document in it") from error
    markdown = tidy(legible(_markdown(text))).strip()
    if not markdown:
        raise ParseFailure("empty_file")
    return Parsed(markdown)


def _text(head: bytes, table: bytes) -> str:
    """Return all text in the order of its positions: body, footnotes, headers, comments, text boxes."""
    words = struct.unpack_from("<H", head, 32)[0]
    at = 34 + 2 * words
    longs = struct.unpack_from("<H", head, at)[0]
    at += 2 + 4 * longs + 2  # the count of pairs stands between
    offset, length = struct.unpack_from("<II", head, at + 8 * CLX)
    clx = table[offset : offset + length]
    place = 0
    while place < len(clx) and clx[place] == 1:  # formatting, each with its length
        place += 3 + struct.unpack_from("<H", clx, place + 1)[0]
    if clx[place] != 2:
        raise ValueError("no piece table")
    size = struct.unpack_from("<I", clx, place + 1)[0]
    pieces = clx[place + 5 : place + 5 + size]
    count = (len(pieces) - 4) // 12
    if not 0 < count <= MOST_PIECES:
        raise ValueError("pieces")
    positions = struct.unpack_from(f"<{count + 1}I", pieces)
    found: list[str] = []
    for index in range(count):
        where = struct.unpack_from("<I", pieces, 4 * (count + 1) + 8 * index + 2)[0]
        length = max(positions[index + 1] - positions[index], 0)
        if where & NARROW:  # one byte a letter, Western
            start = (where & ~NARROW) // 2
            found.append(head[start : start + length].decode("cp1252", "replace"))
        else:
            found.append(head[where : where + 2 * length].decode("utf-16-le", "replace"))
    return "".join(found)


def _markdown(text: str) -> str:
    """Return paragraphs. A table's row is a line of its cells: what ends a row looks like an empty cell."""
    for _ in range(5):  # a field inside a field
        text = FIELD_CODE.sub("", text)
    text = text.translate(GONE).replace("\x0b", "\n").replace("\x1e", "-").replace("\xa0", " ")
    text = CELL_ENDS.sub("\r", text).replace("\x07", " | ")
    return "\n\n".join(part.strip(" |") for part in re.split("[\r\x0c]", text))
