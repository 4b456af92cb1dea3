"""Excel's binary workbook (.xlsb): sheets, shared strings and cell values from its records ([MS-XLSB])."""

import struct
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel

from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import ParseFailure
from apps.knowledge.parsers.spreadsheet_tables import Sheet, shown

ROW, SHEET, STRING, MERGED = 0, 156, 19, 176
RK, ERROR, BOOLEAN, REAL, TEXT, SHARED = 2, 3, 4, 5, 6, 7
FORMULA_TEXT, FORMULA_NUMBER, FORMULA_BOOLEAN = 8, 9, 10
LAST_CELL = 11
WORKBOOK, FORMAT, STYLE, STYLES_BEGIN, STYLES_END = 153, 44, 47, 617, 618
BUILT_IN_DATES = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
When = date | datetime | time | timedelta
NAMES_AT = (8, 12)  # in a sheet's record; the second where the first release of Excel 2007 wrote it


def read_xlsb(package: Package) -> tuple[list[Sheet], list[str]]:
    """Return the visible sheets, and the names of the hidden ones."""
    relations = package.relations("xl/workbook.bin")
    strings = [_string(body, 1) for kind, body in _records(package.read("xl/sharedstrings.bin")) if kind == STRING]
    dates, epoch = _date_styles(package.read("xl/styles.bin")), CALENDAR_WINDOWS_1900
    sheets, hidden = [], []
    for kind, body in _records(package.read("xl/workbook.bin")):
        if kind == WORKBOOK and body and body[0] & 1:
            epoch = CALENDAR_MAC_1904
        if kind != SHEET:
            continue
        state = struct.unpack_from("<I", body)[0]
        at = next((place for place in NAMES_AT if _string(body, place) in relations), NAMES_AT[0])
        relation = _string(body, at)
        name = _string(body, at + 4 + len(relation.encode("utf-16-le")))
        if state:
            hidden.append(name)
        else:
            part = relations.get(relation, ("", ""))[1]
            sheets.append(_sheet(name, package.read(part), strings, dates, epoch))
    return sheets, hidden


def _date_styles(data: bytes | None) -> frozenset[int]:
    """Return the styles whose numbers are days and times."""
    formats: dict[int, str] = {}
    styles: list[int] = []
    inside = False
    for kind, body in _records(data):
        if kind == FORMAT and len(body) > 2:
            formats[struct.unpack_from("<H", body)[0]] = _string(body, 2)
        elif kind in (STYLES_BEGIN, STYLES_END):
            inside = kind == STYLES_BEGIN
        elif kind == STYLE and inside and len(body) >= 4:
            styles.append(struct.unpack_from("<H", body, 2)[0])
    return frozenset(
        style
        for style, number in enumerate(styles)
        if (number in BUILT_IN_DATES and number not in formats)
        or is_date_format(formats.get(number, BUILTIN_FORMATS.get(number, "")))
    )


def _sheet(name: str, data: bytes | None, strings: list[str], dates: frozenset[int], epoch: datetime) -> Sheet:
    sheet, row = Sheet(name), 0
    for kind, body in _records(data):
        if kind == ROW and len(body) >= 4:
            row = struct.unpack_from("<I", body)[0]
        elif kind <= LAST_CELL and len(body) > 8:
            column = struct.unpack_from("<I", body)[0]
            value: object = _value(kind, body, strings)
            if isinstance(value, float) and struct.unpack_from("<I", body, 4)[0] & 0xFFFFFF in dates:
                value = _when(value, epoch)
            if text := shown(value):
                sheet.cells.setdefault(row, {})[column] = text
        elif kind == MERGED and len(body) >= 16:
            top, bottom, left, right = struct.unpack_from("<4I", body)
            sheet.merged.append((top, left, bottom, right))
    return sheet


def _when(value: float, epoch: datetime) -> When | float:
    """Return the day or time that a number stands for, the number itself beyond the calendar."""
    try:
        found: When | None = from_excel(value, epoch=epoch)
    except (OverflowError, ValueError):
        return value
    return value if found is None else found


def _value(kind: int, body: bytes, strings: list[str]) -> str | float | bool:
    if kind in (TEXT, FORMULA_TEXT):
        return _string(body, 8)
    if kind in (BOOLEAN, FORMULA_BOOLEAN):
        return bool(body[8])
    if kind in (REAL, FORMULA_NUMBER) and len(body) >= 16:
        return float(struct.unpack_from("<d", body, 8)[0])
    if kind == SHARED and len(body) >= 12:
        at = struct.unpack_from("<I", body, 8)[0]
        return strings[at] if at < len(strings) else ""
    if kind == RK and len(body) >= 12:
        raw = struct.unpack_from("<I", body, 8)[0]
        number = (
            float(struct.unpack("<i", struct.pack("<I", raw))[0] >> 2)
            if raw & 2
            else float(struct.unpack("<d", struct.pack("<Q", (raw & 0xFFFFFFFC) << 32))[0])
        )
        return number / 100 if raw & 1 else number
    return ""


def _string(body: bytes, at: int) -> str:
    if len(body) < at + 4:
        return ""
    count = struct.unpack_from("<I", body, at)[0]
    if count == 0xFFFFFFFF:
        return ""
    return body[at + 4 : at + 4 + 2 * count].decode("utf-16-le", "replace")


def _records(data: bytes | None) -> Iterator[tuple[int, bytes]]:
    """Yield (kind, body). Both numbers before a body are written in groups of seven bits."""
    at, data = 0, data or b""
    while at < len(data):
        numbers = []
        for most in (2, 4):
            number = 0
            for place in range(most):
                if at >= len(data):
                    return
                byte = data[at]
                at += 1
                number |= (byte & 0x7F) << (7 * place)
                if not byte & 0x80:
                    break
            numbers.append(number)
        kind, size = numbers
        if at + size > len(data):
            raise ParseFailure("broken_file", reason="a record is cut short")
        yield kind, data[at : at + size]
        at += size
