"""Rows of cells as a Markdown table."""

import re
from collections.abc import Sequence

WIDEST = 200  # columns; a wider table is no table
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
