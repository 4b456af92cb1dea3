"""What a parser gives: Markdown, where its pages begin, pictures, and facts about the file.

Nothing here or in a parser imports Django: parsers run in the sandbox.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import IO, Any


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a document, under the name by which its Markdown refers to it; ``page`` is where it stands first."""

    name: str
    media_type: str
    data: bytes = field(repr=False)
    width: int
    height: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document that has been read. ``pages`` holds (number from 1, character offset in ``markdown``).

    ``whole`` is a file of the Markdown in UTF-8 where it is too long to be held: ``markdown`` is its beginning then.
    ``unread`` are the numbers of pages whose text is a picture: ``recognition.recognise`` reads one of them.
    """

    markdown: str
    pages: list[tuple[int, int]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)  # encoding, title, …; JSON only
    unread: list[int] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    whole: IO[bytes] | None = None


class ParseFailure(Exception):
    """The file cannot be read; ``code`` is one of ``apps.knowledge.errors``."""

    def __init__(self, code: str, **details: Any) -> None:
        super().__init__(code, details)
        self.code = code
        self.details = details


Parse = Callable[..., Parsed]  # (file) or, where the format knows passwords, (file, *, password="")

BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")


def join_pages(pages: Iterable[tuple[int, str]]) -> tuple[str, list[tuple[int, int]]]:
    """Return the Markdown of numbered pages, and where each begins in it."""
    parts: list[str] = []
    marks: list[tuple[int, int]] = []
    length = 0
    for number, text in pages:
        separator = "\n\n" if length and text else ""
        marks.append((number, length + len(separator)))
        parts += (separator, text)
        length += len(separator) + len(text)
    return "".join(parts), marks


def tidy(text: str) -> str:
    """Return text with Unix line ends, and never two blank lines in a row."""
    return BLANK_LINES.sub("\n\n", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
