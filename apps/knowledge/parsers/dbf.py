"""dBase tables (.dbf): fields and rows as a table."""

import struct
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.parsed import Parsed, ParseFailure
from apps.knowledge.parsers.tables import data_table

MOST_ROWS = 200_000
CODE_PAGES = {0x03: "cp1252", 0x13: "cp932", 0x4D: "gb18030", 0x4E: "cp949", 0x4F: "big5hkscs", 0x57: "cp1252",
              0x65: "cp866", 0x79: "cp949", 0x7A: "gb18030", 0x7B: "cp932", 0xC8: "cp1250", 0xC9: "cp1251"}  # fmt: skip
FIELD_BYTES, DELETED = 32, b"*"


def parse_dbf(file: BinaryIO) -> Parsed:
    """Read a table; rows marked as deleted are left out. Raises ParseFailure: broken_file, empty_file."""
    data = file.read()
    if len(data) < 33:
        raise ParseFailure("broken_file", reason="no table in it")
    rows, start, width = struct.unpack_from("<IHH", data, 4)
    fields: list[tuple[bytes, str, int]] = []
    at = FIELD_BYTES
    while at + FIELD_BYTES <= min(len(data), start) and data[at] != 0x0D:
        name = data[at : at + 11].split(b"\x00")[0]
        fields.append((name, chr(data[at + 11]), data[at + 16]))
        at += FIELD_BYTES
    if not fields or not width:
        raise ParseFailure("broken_file", reason="no table in it")
    body = data[start : start + min(rows, MOST_ROWS) * width]
    encoding = CODE_PAGES.get(data[29]) or decode(b"\n".join([*(name for name, _, _ in fields), body]))[1]
    table = [[_text(name, encoding) for name, _, _ in fields]]
    for place in range(0, len(body), width):
        if body[place : place + 1] == DELETED:
            continue
        cells, left = [], place + 1
        for _, kind, size in fields:
            cells.append(_value(body[left : left + size], kind, encoding))
            left += size
        table.append(cells)
    if not any(any(row) for row in table[1:]):
        raise ParseFailure("empty_file")
    metadata = {"encoding": encoding, "rows": len(table) - 1}
    if rows > MOST_ROWS:
        metadata["truncated"] = f"{rows - MOST_ROWS} of {rows} rows"
    return Parsed(data_table(table), metadata=metadata)


def _text(data: bytes, encoding: str) -> str:
    return legible(data.decode(encoding, "replace").replace("\x00", "")).strip()


def _value(data: bytes, kind: str, encoding: str) -> str:
    """Return a field as people write it: days with dashes, numbers of the binary kinds in digits."""
    if kind == "I" and len(data) == 4:
        return str(struct.unpack("<i", data)[0])
    if kind == "D" and len(data) == 8 and data.isdigit():
        return f"{data[:4].decode()}-{data[4:6].decode()}-{data[6:].decode()}"
    return "" if kind in "MGP" else _text(data, encoding)
