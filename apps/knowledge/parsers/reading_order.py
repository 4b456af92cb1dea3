"""Recognised lines of a page, turned upright and put into the order in which people read them.

Pure geometry: columns are cut first, what stands in one row is one line, lines that fill their column
go on with the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from apps.knowledge.parsers.paragraphs import BULLET, CJK, SENTENCE_END, joined

TALL = 1.5  # times its width: from here on the recogniser turns a box before it reads it
LOOK = 3  # rows in which the strip between two columns shows, since their lines need not be level
COLUMN_LINES = 4  # fewer on a side are no column of prose
COLUMN_FILL = 0.55  # share of a column's width that its usual line takes; cells of a table take less
FULL = 0.8  # share of the column's width from which on a line is full
SPACE = 0.9  # times the usual height: a gap above a line from which on a paragraph begins
HEADING = 1.45  # times the usual height
LONGEST_HEADING = 60


@dataclass(frozen=True, slots=True)
class Line:
    """A recognised line: its text, its box (x to the right, y down), and whether it had to be turned by 180°."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    turned: bool = False

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def width(self) -> float:
        return self.right - self.left


def arranged(lines: Sequence[Line]) -> str:
    """Return the Markdown of a page's lines."""
    lines = [line for line in _upright(lines) if line.text.strip()]
    if not lines:
        return ""
    usual = median(line.height for line in lines)
    return "\n\n".join(block for column in _columns(lines) for block in _blocks(column, usual))


def _upright(lines: Sequence[Line]) -> list[Line]:
    """Turn the page's coordinates so that its lines run from left to right, by the vote of its longer lines."""
    voters = [line for line in lines if len(line.text) > 2] or list(lines)
    tall = sum(line.height > TALL * line.width for line in voters) * 2 > len(voters)
    over = sum(line.turned for line in voters) * 2 > len(voters)
    if tall and not over:  # read downwards: the first line is the one on the right
        return [replace(n, left=n.top, right=n.bottom, top=-n.right, bottom=-n.left) for n in lines]
    if tall:
        return [replace(n, left=-n.bottom, right=-n.top, top=n.left, bottom=n.right) for n in lines]
    if over:
        return [replace(n, left=-n.right, right=-n.left, top=-n.bottom, bottom=-n.top) for n in lines]
    return list(lines)


def _columns(lines: list[Line]) -> list[list[Line]]:
    """Cut columns of prose apart, left before right; what stands above, between or below them keeps its place."""
    rows = _rows(lines)
    parts: list[list[Line]] = []
    waiting: list[Line] = []
    at = 0
    while at < len(rows):
        end, sides = _side_by_side(rows, at)
        if sides:
            parts += [part for part in (waiting, *sides) if part]
            waiting = []
        else:
            waiting += rows[at]
        at = end
    return [*parts, waiting] if waiting else parts


def _side_by_side(rows: list[list[Line]], at: int) -> tuple[int, list[list[Line]]]:
    """Return where the columns that begin at a row end, and each of them; the next row and none if there are none.

    Columns are parted by a white strip that no line crosses, and hold prose.
    """
    gap = SPACE * median(line.height for row in rows[at : at + LOOK] for line in row)
    best, columns = at + 1, list[list[Line]]()
    for left, right in _strips([line for row in rows[at : at + LOOK] for line in row], gap):
        low, high, end = left, right, at
        while end < len(rows):
            inner = max([low, *(n.right for n in rows[end] if n.left < low)])
            outer = min([high, *(n.left for n in rows[end] if n.left >= low)])
            if outer - inner < gap:
                break
            low, high, end = inner, outer, end + 1
        found = [line for row in rows[at:end] for line in row]
        sides = [n for n in found if n.right <= low], [n for n in found if n.right > low]
        if end > best and all(len(side) >= COLUMN_LINES and _is_prose(side) for side in sides):
            best, columns = end, [column for side in sides for column in _columns(side)]
    return best, columns


def _strips(lines: list[Line], gap: float) -> list[tuple[float, float]]:
    """Return the white strips between lines, from left to right, as (where it begins, where it ends)."""
    ordered = sorted(lines, key=lambda line: line.left)
    found, reach = [], ordered[0].right
    for line in ordered[1:]:
        if line.left - reach >= gap:
            found.append((reach, line.left))
        reach = max(reach, line.right)
    return found


def _is_prose(lines: list[Line]) -> bool:
    width = max(line.right for line in lines) - min(line.left for line in lines)
    return median(line.width for line in lines) >= COLUMN_FILL * width and median(len(n.text) for n in lines) >= 8


def _rows(lines: list[Line]) -> list[list[Line]]:
    """Return lines that stand beside each other together, from left to right, rows from top to bottom."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.top + line.bottom):
        middle = (line.top + line.bottom) / 2
        last = rows[-1] if rows else []
        if last and abs(middle - sum(n.top + n.bottom for n in last) / (2 * len(last))) < 0.5 * min(
            line.height, *(n.height for n in last)
        ):
            last.append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _blocks(lines: list[Line], usual: float) -> list[str]:
    """Return a column's paragraphs and headings."""
    grouped = _rows(lines)
    rows = [
        replace(
            row[0], text="  ".join(n.text.strip() for n in row), right=row[-1].right, bottom=max(n.bottom for n in row)
        )
        for row in grouped
    ]
    width = max(row.right for row in rows) - min(row.left for row in rows)
    single = {id(row) for row, parts in zip(rows, grouped, strict=True) if len(parts) == 1}
    blocks: list[str] = []
    for before, row in pairwise([None, *rows]):
        assert row is not None
        text = row.text
        spaced = before is None or row.top - before.bottom > SPACE * usual
        if (
            id(row) in single
            and row.height > HEADING * usual
            and len(text) <= LONGEST_HEADING
            and any(map(str.isalpha, text))
        ):
            blocks.append(f"## {text}")
        elif before is None or spaced or blocks[-1].startswith("## "):
            blocks.append(text)
        elif id(row) in single and id(before) in single and _goes_on(before, row, width):
            blocks[-1] = joined(blocks[-1], text)
        else:
            blocks[-1] += f"\n{text}"
    return blocks


def _goes_on(before: Line, row: Line, width: float) -> bool:
    if before.text.rstrip().endswith(SENTENCE_END) or BULLET.match(row.text):
        return False
    longest = 4 if CJK.search(before.text) else 12
    return before.width >= FULL * width and len(before.text) >= longest
