"""Ruled tables of a PDF page: lines as pdfium draws them, cells by pdfplumber's geometry, text by pdfium.

pdfplumber itself would read the page a second time at one page a second, and loses text of CJK fonts.
"""

import ctypes
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from apps.knowledge.parsers.paragraphs import CJK, HYPHENS
from apps.knowledge.parsers.tables import markdown_table

BUDGET_S = 5.0  # for the tables of one document; what comes later is read as text
LEAST_EDGE = 6.0  # points
STRAIGHT = 1.0  # points by which a ruling may lean
MOST_EDGES = 1_200
MOST_POINTS = 4_000
SNAP = 3.0  # points between two strokes that are one ruling
LEAST_FILLED = 0.3  # share of the cells in which text stands; a frame around prose has less structure


class Box(NamedTuple):
    """A rectangle in points: x from the left, y from the page's foot."""

    left: float
    bottom: float
    right: float
    top: float

    def holds(self, x: float, y: float) -> bool:
        """Whether a point lies inside."""
        return self.left - 1 <= x <= self.right + 1 and self.bottom - 1 <= y <= self.top + 1


@dataclass(slots=True)
class Table:
    """A table: where it stands, and its rows; a cell that spans others repeats its text."""

    box: Box
    rows: list[list[str]]

    @property
    def markdown(self) -> str:
        return markdown_table(self.rows)

    def go_on(self, before: "Table") -> None:
        """Take the header of the table that goes on here from the page before, unless it is printed again."""
        if self.rows[0] != before.rows[0]:
            self.rows.insert(0, before.rows[0])

    def continues(self, before: "Table") -> bool:
        """Whether this table has the columns of the one before."""
        aligned = abs(self.box.left - before.box.left) < 2 * SNAP and abs(self.box.right - before.box.right) < 2 * SNAP
        return aligned and len(self.rows[0]) == len(before.rows[0])


class TableFinder:
    """Finds the tables of one document's pages until its time is used up."""

    def __init__(self) -> None:
        self.until = time.monotonic() + BUDGET_S
        self.skipped = 0  # pages with rulings that were read as text

    def tables(self, paths: Sequence[Any], textpage: Any) -> list[Table]:
        """Return the tables that a page's paths (as pdfium's raw objects) rule, from top to bottom."""
        edges = []
        for edge in _edges(paths):
            edges.append(edge)
            if len(edges) > MOST_EDGES or time.monotonic() > self.until:
                self.skipped += 1
                return []
        across = sum(edge["orientation"] == "h" for edge in edges)
        if across < 3 or len(edges) - across < 3:
            return []
        found = self._cells(edges)
        tables = [table for cells in found if (table := _table(cells, textpage))]
        return sorted(tables, key=lambda table: -table.box.top)

    def _cells(self, edges: list[dict[str, Any]]) -> list[list[tuple[float, float, float, float]]]:
        from pdfplumber import table

        merged = table.merge_edges(edges, SNAP, SNAP, SNAP, SNAP)
        points = table.edges_to_intersections(merged, SNAP, SNAP)
        if len(points) > MOST_POINTS or time.monotonic() > self.until:
            self.skipped += 1
            return []
        return list(table.cells_to_tables(table.intersections_to_cells(points)))


def _edges(paths: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the horizontal and vertical strokes of paths as pdfplumber knows them, y growing downwards."""
    moved = raw.FS_MATRIX()
    for path in paths:
        raw.FPDFPageObj_GetMatrix(path, moved)
        matrix = pdfium.PdfMatrix.from_raw(moved)
        points: list[tuple[float, float]] = []
        for index in range(min(max(raw.FPDFPath_CountSegments(path), 0), 4 * MOST_EDGES)):
            segment = raw.FPDFPath_GetPathSegment(path, index)
            x, y = ctypes.c_float(), ctypes.c_float()
            raw.FPDFPathSegment_GetPoint(segment, x, y)
            here = matrix.on_point(x.value, y.value)
            kind = raw.FPDFPathSegment_GetType(segment)
            if kind == raw.FPDF_SEGMENT_LINETO and points:
                yield from _edge(points[-1], here)
            elif kind == raw.FPDF_SEGMENT_MOVETO:
                points = []
            points.append(here)
            if points and raw.FPDFPathSegment_GetClose(segment):
                yield from _edge(here, points[0])


def _edge(start: tuple[float, float], end: tuple[float, float]) -> Iterator[dict[str, Any]]:
    (x0, y0), (x1, y1) = start, end
    level, upright = abs(y0 - y1) <= STRAIGHT, abs(x0 - x1) <= STRAIGHT
    if level == upright or abs(x0 - x1) + abs(y0 - y1) < LEAST_EDGE:
        return
    left, right = (min(x0, x1), max(x0, x1)) if level else (x0, x0)
    top, bottom = (-y0, -y0) if level else (-max(y0, y1), -min(y0, y1))
    yield {
        "orientation": "h" if level else "v",
        "object_type": "line",
        "x0": left,
        "x1": right,
        "top": top,
        "bottom": bottom,
        "width": right - left,
        "height": bottom - top,
    }


def _table(cells: list[tuple[float, float, float, float]], textpage: Any) -> Table | None:
    """Return the table that cells make, None where they are a frame, a box in a form, or hold next to no text."""
    columns = sorted({left for left, *_rest in cells})
    rows = sorted({top for _left, top, *_rest in cells})
    if len(columns) < 2 or len(rows) < 2:
        return None
    texts: dict[tuple[float, float], str] = {}
    filled = 0
    for left, top, right, bottom in cells:
        text = _text(textpage, Box(left, -bottom, right, -top))
        filled += bool(text)
        for x in columns:
            for y in rows:
                if left <= x < right and top <= y < bottom:
                    texts[x, y] = text
    if filled < 2 or filled < LEAST_FILLED * len(cells):
        return None
    left, top = min(cell[0] for cell in cells), min(cell[1] for cell in cells)
    right, bottom = max(cell[2] for cell in cells), max(cell[3] for cell in cells)
    grid = [[texts.get((x, y), "") for x in columns] for y in rows]
    return Table(Box(left, -bottom, right, -top), [row for row in grid if any(row)] or grid)


def _text(textpage: Any, box: Box) -> str:
    try:
        lines = textpage.get_text_bounded(*box).replace("\r\n", "\n").split("\n")
    except pdfium.PdfiumError:
        return ""
    text = ""
    for line in filter(None, map(str.strip, lines)):
        glue = "" if not text or (CJK.match(text[-1]) and CJK.match(line[0])) else " "
        text = text[:-1] + line if text[-1:] in HYPHENS and text else text + glue + line
    return text
