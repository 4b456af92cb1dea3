"""What a parser gives: Markdown, where its pages begin, and facts about the file.

Nothing here or in a parser imports Django: parsers run in the sandbox.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document that has been read. ``pages`` holds (number from 1, character offset in ``markdown``)."""

    markdown: str
    pages: list[tuple[int, int]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)  # encoding, title, …; JSON only


class ParseFailure(Exception):
    """The file cannot be read; ``code`` is one of ``apps.knowledge.errors``."""

    def __init__(self, code: str, **details: Any) -> None:
        super().__init__(code, details)
        self.code = code
        self.details = details


Parse = Callable[..., Parsed]  # (file) or, where the format knows passwords, (file, *, password="")

BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")


def tidy(text: str) -> str:
    """Return text with Unix line ends, and never two blank lines in a row."""
    return BLANK_LINES.sub("\n\n", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
