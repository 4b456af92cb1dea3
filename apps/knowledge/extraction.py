"""From an original to its Markdown: the sandbox reads the file, then each page whose text is a picture.

A page is recognised in a process of its own, so that one page beyond its limits costs that page:
the document keeps the others, and its metadata names what was not read.
"""

import time
from collections.abc import Callable
from typing import IO

from apps.knowledge.errors import (
    BrokenFile,
    DocumentFailure,
    EmptyFile,
    NeedsOcr,
    NoTextRecognised,
    ParseMemory,
    ParseTimeout,
    SuspiciousFile,
)
from apps.knowledge.parsers.parsed import Parsed, join_pages
from apps.knowledge.sandbox import reader

MOST_PAGES = 500  # whose text is recognised in one document
RECOGNISING_S = 2_400.0  # for all of them together: the task that calls has an hour
OF_A_PAGE = (ParseTimeout, ParseMemory, BrokenFile, SuspiciousFile)  # what costs a page, not the document
BETTER = 1.2  # times the text that a page holds: the least that recognised text replaces it with

Progress = Callable[[str, float], None]


def extract(
    file: IO[bytes],
    content_type: str,
    *,
    password: str = "",
    check: Callable[[], None] = lambda: None,
    progress: Progress = lambda stage, share: None,
) -> Parsed:
    """Return a file's Markdown. ``check`` and ``progress`` are called often; what they raise ends the work.

    ``metadata`` says of pages: ``recognised_pages``, how many were pictures of text, and ``unread_pages``, the numbers
    of those that could not be read.

    Raises:
        DocumentFailure: why there is nothing to index.
    """
    parsed = reader.read(file, content_type, password=password, check=check)
    if parsed.unread:
        parsed = _recognised(parsed, file, content_type, password, check, progress)
    if not parsed.markdown.strip():
        raise EmptyFile
    return parsed


def _recognised(
    parsed: Parsed,
    file: IO[bytes],
    content_type: str,
    password: str,
    check: Callable[[], None],
    progress: Progress,
) -> Parsed:
    texts = _texts(parsed)
    unread: list[int] = []
    recognised = 0
    failure: DocumentFailure | None = None
    until = time.monotonic() + RECOGNISING_S
    for done, number in enumerate(parsed.unread):
        progress("recognising", done / len(parsed.unread))
        if done >= MOST_PAGES or time.monotonic() > until or isinstance(failure, NeedsOcr):
            unread += parsed.unread[done:]
            break
        try:
            found = reader.read(file, content_type, password=password, page=number, check=check).markdown
        except (NeedsOcr, *OF_A_PAGE) as error:
            failure = error
            unread.append(number)
            continue
        recognised += bool(found)
        if _weight(found) > _weight(texts[number]) * BETTER:
            texts[number] = found
    metadata = dict(parsed.metadata)
    if recognised:
        metadata["recognised_pages"] = recognised
    if unread:
        metadata["unread_pages"] = unread
    markdown, marks = join_pages(texts.items())
    if not markdown:
        if failure:
            raise failure
        markdown = _facts(metadata)
    if not markdown:
        raise NoTextRecognised(pages=len(parsed.unread))
    return Parsed(markdown, marks, metadata)


def _texts(parsed: Parsed) -> dict[int, str]:
    """Return each page's Markdown by its number."""
    ends = [start for _number, start in parsed.pages[1:]] + [len(parsed.markdown)]
    return {
        number: parsed.markdown[start:end].strip("\n") for (number, start), end in zip(parsed.pages, ends, strict=True)
    }


def _weight(text: str) -> int:
    return sum(not character.isspace() for character in text)


def _facts(metadata: dict[str, object]) -> str:
    """Return what is known of a picture on which nothing is written, "" of anything else."""
    if "picture" not in metadata:
        return ""
    size = f"{metadata['picture']}, {metadata['width']} × {metadata['height']} px"
    return "\n\n".join(str(fact) for fact in (size, metadata.get("description"), metadata.get("created")) if fact)
