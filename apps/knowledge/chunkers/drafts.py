"""What goes into a chunker and what comes out: plain values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# Level 0 is what is read, cited and found by its words; together its chunks are the document. Level 1 is
# part of one, and only its vector is searched. Levels 2 and 3 are larger stretches around one, which are fetched by id.
PARENT, CHILD, MIDDLE, OUTER = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class PageMark:
    """Where a page begins: its number, from 1, and a character offset in the Markdown."""

    number: int
    start: int


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk without ids. ``parent`` is an index into the list that holds both, None for one that has none.

    ``markdown[start:end]`` is the chunk's own part of the document. ``text`` is the same, except in
    a part of a table or code block that was too large for one chunk: there the table's header or
    the fence is repeated around it, and ``start``/``end`` stay at the rows or lines themselves.
    """

    level: int
    ordinal: int
    parent: int | None
    text: str
    heading: str
    page: int | None
    page_end: int | None
    start: int
    end: int


TokenCounter = Callable[[str], int]


class Chunker(Protocol):
    """Cut one document."""

    def __call__(
        self, markdown: str, pages: Sequence[PageMark], settings: Any, count_tokens: TokenCounter
    ) -> list[ChunkDraft]: ...
