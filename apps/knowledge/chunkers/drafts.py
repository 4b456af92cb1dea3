"""What goes into a chunker and what comes out: plain values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

PARENT, CHILD = 0, 1


@dataclass(frozen=True, slots=True)
class PageMark:
    """Where a page begins: its number, from 1, and a character offset in the Markdown."""

    number: int
    start: int


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk without ids. ``parent`` is an index into the list that holds both, None for a parent.

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


class SettingRefused(ValueError):
    """A chunker's setting cannot be used; ``field`` and ``reason`` say which and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ChunkerSettings:
    """Base of each chunker's settings; a subclass adds whole-number fields and checks them."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return checked settings from stored or typed values.

        Raises:
            SettingRefused: an unknown name, no whole number, or numbers that do not fit together.
        """
        known = {field.name for field in fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise SettingRefused(name, "there is no such setting")
            if isinstance(value, bool) or not isinstance(value, int):
                raise SettingRefused(name, "must be a whole number")
        settings = cls(**values)
        settings.check()
        return settings

    def check(self) -> None:
        """Raise SettingRefused where numbers do not fit together."""

    def within(self, tokens: int) -> Self:
        """Return the same settings for a model that reads no more than this many tokens of a chunk."""
        return self


TokenCounter = Callable[[str], int]


class Chunker(Protocol):
    """Cut one document."""

    def __call__(
        self, markdown: str, pages: Sequence[PageMark], settings: Any, count_tokens: TokenCounter
    ) -> list[ChunkDraft]: ...
