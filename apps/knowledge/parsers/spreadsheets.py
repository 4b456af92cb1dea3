"""Spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods): each visible sheet as tables of its values.

calamine reads them, but builds a grid from the first to the last cell: two cells in far corners are
17 billion. So the parts of an Excel file are counted first, and a file of few cells in a vast grid
goes to openpyxl, which keeps only the cells there are. Formulas give the value that was last computed;
hidden sheets are left out and named in the metadata; hidden rows are read. Pictures come after the sheet's cells.
"""

import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

from apps.knowledge.parsers import odf_locks
from apps.knowledge.parsers.encrypted import OLE_MAGIC, unlocked
from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import Parsed, ParseFailure
from apps.knowledge.parsers.properties import core_properties, open_document_properties
from apps.knowledge.parsers.sheet_pictures import pictures_of
from apps.knowledge.parsers.spreadsheet_tables import Sheet, sheet_markdown, shown

MOST_CELLS = 1_000_000  # of one workbook; what comes after is left out and said so
LARGEST_GRID = 6_000_000
CELL = re.compile(rb'<(?:\w+:)?c\s(?:[^>]{0,300}?\s)?r="([A-Z]{1,3})(\d{1,7})"[^>]{0,300}(?<!/)>')
UNSAVED = re.compile(rb"</f>(?:<v ?/>|<v></v>)?</c>")  # a formula that no spreadsheet program has computed yet
LONGEST_FORMULA, MOST_COUNTED = 9_000, 50_000


def parse_spreadsheet(file: BinaryIO, *, password: str = "") -> Parsed:
    """Read a workbook.

    Raises:
        ParseFailure: password_required, broken_file, suspicious_file, empty_file.
    """
    data = file.read()
    if data.startswith(OLE_MAGIC):
        data = unlocked(data, password)
    elif data.startswith(b"PK") and odf_locks.is_locked(package := Package(io.BytesIO(data))):
        data = odf_locks.unlocked(package, password).getvalue()
    sheets, hidden, unsaved = _sheets(data)
    left, cut = MOST_CELLS, []
    for sheet in sheets:
        left -= sum(map(len, sheet.cells.values()))
        if left < 0:
            cut.append(sheet.name)
            for row in sorted(sheet.cells, reverse=True):
                if left >= 0:
                    break
                left += len(sheet.cells.pop(row))
    pictures = pictures_of(Package(io.BytesIO(data))) if data.startswith(b"PK") else {}
    filled = any(sheet.cells or sheet.name in pictures for sheet in sheets)
    said = [sheet for sheet in sheets if sheet.cells or sheet.name in pictures or (not filled and _is_named(sheet))]
    markdown = "\n\n".join("\n\n".join([sheet_markdown(sheet), *pictures.get(sheet.name, ())]) for sheet in said)
    if not markdown:
        raise ParseFailure("empty_file")
    metadata: dict[str, Any] = {"sheets": len(sheets), **_properties(data)}
    if hidden:
        metadata["hidden_sheets"] = ", ".join(hidden)
    if cut:
        metadata["truncated"] = ", ".join(cut)
    if unsaved:
        metadata["formulas_without_values"] = unsaved
    return Parsed(markdown, metadata=metadata)


def _properties(data: bytes) -> dict[str, str]:
    if not data.startswith(b"PK"):
        return {}
    package = Package(io.BytesIO(data))
    return core_properties(package) or open_document_properties(package)


def _is_named(sheet: Sheet) -> bool:
    """Whether somebody gave a sheet its name: a workbook without a filled cell still says that much."""
    return not re.fullmatch(r"(?:sheet|tabelle|feuil|hoja|лист|工作表)\s?\d*", sheet.name, re.I)


def _sheets(data: bytes) -> tuple[list[Sheet], list[str], int]:
    """Return the visible sheets, the names of the hidden ones, and how many formulas have no saved value."""
    unsaved = 0
    if data.startswith(b"PK"):
        package = Package(io.BytesIO(data))
        if package.read("xl/workbook.bin") is not None:
            from apps.knowledge.parsers.xlsb import read_xlsb

            return *read_xlsb(package), 0
        vast, unsaved = _looked_through(package)
        if vast:
            return *_by_openpyxl(data), unsaved
    return *_of_grid(data), unsaved


def _of_grid(data: bytes) -> tuple[list[Sheet], list[str]]:
    try:
        return _by_calamine(data)
    except PasswordError as error:
        raise ParseFailure("password_required") from error
    except MemoryError:
        raise
    except (CalamineError, ValueError, OSError) as error:
        if data.startswith(b"PK"):
            return _by_openpyxl(data)
        raise ParseFailure("broken_file", reason="no workbook") from error
    except BaseException as error:  # its panics are no Exceptions
        if type(error).__name__ != "PanicException":
            raise
        raise ParseFailure("broken_file", reason="no workbook") from error


def _looked_through(package: Package) -> tuple[bool, int]:
    """Return whether a sheet's corners are too far apart for a grid, and how many formulas have no saved value.

    Inflates every part, and so bounds them all.
    """
    vast, unsaved = False, 0
    for name in package.names():
        data = package.read(name) or b""
        if not name.startswith("xl/worksheets/") or not name.endswith(".xml"):
            continue
        unsaved += sum(_is_number(data, match.start()) for match in islice(UNSAVED.finditer(data), MOST_COUNTED))
        rows, columns = [1 << 30, 0], [1 << 30, 0]
        for match in CELL.finditer(data):
            row, column = int(match.group(2)), _column(match.group(1))
            rows = [min(rows[0], row), max(rows[1], row)]
            columns = [min(columns[0], column), max(columns[1], column)]
        if (rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1) > LARGEST_GRID and rows[1]:
            vast = True
    return vast, unsaved


def _is_number(sheet: bytes, formula: int) -> bool:
    """Whether the cell whose formula ends there is no text: an empty text is a result too."""
    cell = sheet.rfind(b"<c ", max(0, formula - LONGEST_FORMULA), formula)
    return cell >= 0 and b't="str"' not in sheet[cell : sheet.find(b">", cell, formula)]


def _column(letters: bytes) -> int:
    at = 0
    for letter in letters:
        at = at * 26 + letter - 64
    return at


def _by_calamine(data: bytes) -> tuple[list[Sheet], list[str]]:
    sheets, hidden = [], []
    with CalamineWorkbook.from_filelike(io.BytesIO(data)) as workbook:
        for about in workbook.sheets_metadata:
            if about.typ not in (SheetTypeEnum.WorkSheet, SheetTypeEnum.DialogSheet):
                continue
            if about.visible != SheetVisibleEnum.Visible:
                hidden.append(about.name)
                continue
            found = workbook.get_sheet_by_name(about.name)
            sheet = Sheet(about.name)
            top, left = found.start or (0, 0)
            for number, row in enumerate(found.to_python(skip_empty_area=True), start=top):
                texts = {column: text for column, value in enumerate(row, start=left) if (text := shown(value))}
                if texts:
                    sheet.cells[number] = texts
            sheet.merged = [(*start, *end) for start, end in found.merged_cell_ranges or ()]
            sheets.append(sheet)
    return sheets, hidden


def _by_openpyxl(data: bytes) -> tuple[list[Sheet], list[str]]:
    from openpyxl import load_workbook

    try:
        workbook = load_workbook(io.BytesIO(data), data_only=True)
    except Exception as error:
        raise ParseFailure("broken_file", reason="no workbook") from error
    sheets, hidden = [], []
    for found in workbook.worksheets:
        if found.sheet_state != "visible":
            hidden.append(found.title)
            continue
        sheet = Sheet(found.title)
        for row, column, value in _filled(found):
            sheet.cells.setdefault(row, {})[column] = value
        sheet.merged = [(area.min_row, area.min_col, area.max_row, area.max_col) for area in found.merged_cells.ranges]
        sheets.append(sheet)
    return sheets, hidden


def _filled(worksheet: Any) -> Iterator[tuple[int, int, str]]:
    for (row, column), cell in sorted(worksheet._cells.items()):
        if text := shown(cell.value):
            yield row, column, text
