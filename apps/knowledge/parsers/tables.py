"""Rows of cells as a Markdown table."""

import re
from collections.abc import Sequence
from itertools import zip_longest

WIDEST = 200  # columns; a wider table is no table
LONGEST_HEADER = 480  # signs, a Chinese one counting for two; a longer one cannot be repeated over each part
LONGEST_NAME = 60  # of a column
FEWEST_NAMES = 12
MOST_NAMED = 200_000  # cells that get the name of their column
_SPACE = re.compile(r"\s+")


def cell_text(text: str) -> str:
    """Return a cell's text on one line, with its pipes escaped."""
    return _SPACE.sub(" ", text).strip().replace("|", "\\|")


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is the header; a table of one column is returned as paragraphs.

    Rows may differ in length; rows without any text are dropped.
    """
    kept = [[cell_text(cell) for cell in row[:WIDEST]] for row in rows]
    kept = [row for row in kept if any(row)]
    width = max((len(row) for row in kept), default=0)
    if width <= 1:
        return "\n\n".join(cell.replace("\\|", "|") for row in kept for cell in row)
    lines = ["| " + " | ".join([*row, *[""] * (width - len(row))]) + " |" for row in kept]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def data_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of data, whose first row names its columns.

    Where the names are too many to be repeated over each part that the table is cut into, each row is a paragraph
    in which every value stands behind the name of its column.
    """
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    names = [_plain(cell) for cell in kept[0]] if kept else []
    signs = sum(3 + len(name) + sum(sign > "\u2e80" for sign in name) for name in names)
    fits = signs <= LONGEST_HEADER or len(names) < FEWEST_NAMES or max(map(len, names)) > LONGEST_NAME
    if fits or len(names) > WIDEST or len(kept) < 2 or len(kept) * len(names) > MOST_NAMED:
        return markdown_table(rows)
    return "\n\n".join(_named(names, row) for row in kept[1:])


def _named(names: Sequence[str], row: Sequence[str]) -> str:
    if len(row) == 1:  # a line across the table
        return _plain(row[0])
    pairs = zip_longest(names, map(_plain, row), fillvalue="")
    return "; ".join(f"{name}: {value}" if name else value for name, value in pairs if value)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
