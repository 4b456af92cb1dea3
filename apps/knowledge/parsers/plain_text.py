"""Plain text and Markdown: decoded, made legible, otherwise as it is; numbered chapters of a text become headings."""

import re
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.paragraphs import CHAPTER, chapter_level
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
TITLE_LINE = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE | re.IGNORECASE)
FIRST_HEADING = re.compile(r"^ {0,3}# +(.+?)[ \t#]*$", re.MULTILINE)
CHAPTER_LINE = re.compile(f"^{CHAPTER.pattern}", re.MULTILINE)
FEWEST_CHAPTERS = 2


def parse_text(file: BinaryIO) -> Parsed:
    """Read a plain text file. Raises ParseFailure(empty_file) where there is no text."""
    text, encoding = _read(file)
    return Parsed(_with_chapters(text), metadata={"encoding": encoding})


def parse_markdown(file: BinaryIO) -> Parsed:
    """Read a Markdown file; its front matter is kept as text, the title is taken from it or from the first heading."""
    text, encoding = _read(file)
    metadata = {"encoding": encoding}
    front = FRONT_MATTER.match(text)
    title = (front and TITLE_LINE.search(front.group(1))) or FIRST_HEADING.search(text)
    if title:
        metadata["title"] = title.group(1)[:300]
    if front:
        # Between its rules the block would be taken for a heading; a fence keeps its lines as they are.
        text = f"```yaml\n{front.group(1)}\n```\n\n{text[front.end() :].lstrip()}"
    return Parsed(text, metadata=metadata)


def _read(file: BinaryIO) -> tuple[str, str]:
    text, encoding = decode(file.read())
    text = tidy(legible(text))
    if not text.strip():
        raise ParseFailure("empty_file")
    return text, encoding


def _with_chapters(text: str) -> str:
    found = [(match, level) for match in CHAPTER_LINE.finditer(text) if (level := chapter_level(match))]
    if len(found) < FEWEST_CHAPTERS:
        return text
    parts: list[str] = []
    at = 0
    for match, level in found:
        parts += (text[at : match.start()], "#" * level, " ", match.group(1))
        at = match.end()
    return "".join([*parts, text[at:]])
