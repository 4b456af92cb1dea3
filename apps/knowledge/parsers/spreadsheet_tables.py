"""A sheet's cells as Markdown tables: merged cells written out, stacked headers joined, blank rows and columns gone."""

import datetime
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from apps.common.text import legible
from apps.knowledge.parsers.tables import data_table

Cells = dict[int, dict[int, str]]  # row -> column -> text; cells without text are not in it
Area = tuple[int, int, int, int]  # top, left, bottom, right; all inside
MOST_FILLED = 500_000  # cells that merged areas may fill in one sheet
DEEPEST_HEADER = 4
LONGEST_SPANNING_HEADER = 16  # a longer text over the whole table is its title


@dataclass(slots=True)
class Sheet:
    """One visible sheet."""

    name: str
    cells: Cells = field(default_factory=dict)
    merged: list[Area] = field(default_factory=list)


def shown(value: Any) -> str:
    """Return a cell's value as people see it: whole numbers without a fraction, days without a time."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        digits = format(value, ".15g")  # all that such a program keeps
        return str(int(Decimal(digits))) if value.is_integer() and abs(value) < 1e21 else digits
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ")
    return " ".join(legible(str(value)).split())


def sheet_markdown(sheet: Sheet) -> str:
    """Return a sheet under its name as a heading."""
    if not sheet.cells:
        return f"## {sheet.name}"
    spans = _fill(sheet)
    blocks = [_block(rows, sheet.cells, spans) for rows in _blocks(sheet.cells)]
    return "\n\n".join([f"## {sheet.name}", *filter(None, blocks)])


def _fill(sheet: Sheet) -> dict[int, list[tuple[int, int, int]]]:
    """Give each merged area's text to all its cells in rows that have any; return row -> (left, right, bottom)."""
    cells, spans = sheet.cells, dict[int, list[tuple[int, int, int]]]()
    rows = sorted(cells)
    widest = max(max(row) for row in cells.values())
    left_over = MOST_FILLED
    for top, left, bottom, right in sheet.merged:
        text = cells.get(top, {}).get(left)
        if not text:
            continue
        right = min(right, widest)
        spans.setdefault(top, []).append((left, right, bottom))
        for row in rows[bisect_left(rows, top) : bisect_right(rows, bottom)]:
            left_over -= right - left + 1
            if left_over < 0:
                return spans
            for column in range(left, right + 1):
                cells[row].setdefault(column, text)
    return spans


def _blocks(cells: Cells) -> list[list[int]]:
    """Cut the rows where a blank row is followed by what looks like the header of another table."""
    rows = sorted(cells)
    blocks: list[list[int]] = [[]]
    for place, row in enumerate(rows):
        gap = place and row - rows[place - 1] > 1
        if gap and _begins_table(cells, rows[place : place + 3]):
            blocks.append([])
        blocks[-1].append(row)
    return blocks


def _begins_table(cells: Cells, rows: Sequence[int]) -> bool:
    """Whether the first of these rows is words and the next ones hold numbers under them."""
    first = cells[rows[0]]
    words = len(first) > 1 and not any(map(_is_number, first.values()))
    return words and any(any(map(_is_number, cells[row].values())) for row in rows[1:])


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").rstrip("%"))
    except ValueError:
        return text[:4].isdigit() and text[4:5] == "-"
    return True


def _block(rows: list[int], cells: Cells, spans: dict[int, list[tuple[int, int, int]]]) -> str:
    columns = sorted({column for row in rows for column in cells[row]})
    above: list[str] = []
    while len(columns) > 1 and rows and _is_title(rows, cells, spans, columns):
        above.append(next(iter(cells[rows.pop(0)].values())))
    if not rows:
        return "\n\n".join(above)
    depth = _header_depth(rows, cells, spans)
    header = [_joined([cells[row].get(column, "") for row in rows[:depth]]) for column in columns]
    body = [_row(cells[row], columns, spans.get(row, ())) for row in rows[depth:]]
    return "\n\n".join([*above, data_table([header, *body])])


def _is_title(rows: list[int], cells: Cells, spans: dict[int, list[tuple[int, int, int]]], columns: list[int]) -> bool:
    """Whether the first row is one text over the whole table, and more than a header that spans it."""
    texts = set(cells[rows[0]].values())
    if len(texts) > 1:
        return False
    merged = any(right > left for left, right, _ in spans.get(rows[0], ()))
    followed = len(rows) > 1 and len(set(cells[rows[1]].values())) > 1
    return not (merged and followed and len(next(iter(texts))) <= LONGEST_SPANNING_HEADER)


def _header_depth(rows: list[int], cells: Cells, spans: dict[int, list[tuple[int, int, int]]]) -> int:
    """Return how many rows the header has: one more below each that spans columns, and what spans rows beside it."""
    depth = 1
    while depth < min(DEEPEST_HEADER, len(rows)):
        wide = any(right > left for left, right, _ in spans.get(rows[depth - 1], ()))
        if not wide or any(map(_is_number, cells[rows[depth]].values())):
            return depth
        depth += 1
    return depth


def _joined(texts: list[str]) -> str:
    kept = [text for place, text in enumerate(texts) if text and text not in texts[:place]]
    return " / ".join(kept)


def _row(row: dict[int, str], columns: list[int], spans: Sequence[tuple[int, int, int]]) -> list[str]:
    if len(row) > 1 and len(set(row.values())) == 1 and any(right > left for left, right, _ in spans):
        return [next(iter(row.values()))]  # a line across the table, said once
    return [row.get(column, "") for column in columns]
