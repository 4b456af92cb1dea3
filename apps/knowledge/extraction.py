"""From an original to its Markdown: the sandbox reads the file, then each page whose text is a picture.

Then pictures get words, by recognition and by a vision model; a recording goes to a speech model. A page
is recognised in a process of its own, so that one beyond its limits costs that page: the document keeps
the others, and its metadata names what was not read.
"""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import IO
from uuid import UUID

from apps.knowledge import captions
from apps.knowledge.describing import transcribed
from apps.knowledge.errors import (
    BrokenFile,
    DescriptionFailed,
    DocumentFailure,
    EmptyFile,
    NeedsOcr,
    NoTextRecognised,
    ParseMemory,
    ParseTimeout,
    SuspiciousFile,
)
from apps.knowledge.parsers.content_types import RECORDINGS
from apps.knowledge.parsers.illustrations import REFERENCE, without_references
from apps.knowledge.parsers.parsed import Parsed, join_pages
from apps.knowledge.parsers.properties import language_of
from apps.knowledge.sandbox import reader

MOST_PAGES = 500  # whose text is recognised in one document
RECOGNISING_S = 2_400.0  # for all of them together: the task that calls has an hour
OF_A_PAGE = (ParseTimeout, ParseMemory, BrokenFile, SuspiciousFile)  # what costs a page, not the document
BETTER = 1.2  # times the text that a page holds: the least that recognised text replaces it with

SAID = re.compile(r"\S")
Progress = Callable[[str, float], None]


def extract(
    file: IO[bytes],
    content_type: str,
    *,
    workspace_id: UUID | None = None,
    password: str = "",
    check: Callable[[], None] = lambda: None,
    progress: Progress = lambda stage, share: None,
) -> Parsed:
    """Return a file's Markdown and its pictures, with words for them: what is written there, what a model sees.

    ``workspace_id`` is whose models are asked about pictures and recordings. ``check`` and ``progress`` are called
    often; what they raise ends the work.

    ``metadata`` says of pages: ``recognised_pages``, how many were pictures of text, and ``unread_pages``, the numbers
    of those that could not be read.

    Raises:
        DocumentFailure: why there is nothing to index.
    """
    if content_type in RECORDINGS:
        return transcribed(file, content_type, workspace_id=workspace_id, check=check)
    parsed = reader.read(file, content_type, password=password, check=check)
    failure = None
    if parsed.unread:
        parsed, failure = _recognised(parsed, file, content_type, password, check, progress)
    if parsed.pictures:
        parsed = _captioned(parsed, workspace_id, check, progress, facts=failure is None)
    if SAID.search(without_references(parsed.markdown)):
        language = parsed.metadata.get("language") or language_of(parsed.markdown)
        return replace(parsed, metadata={**parsed.metadata, "language": language}) if language else parsed
    if failure:
        raise failure
    if parsed.unread or parsed.pictures:
        raise NoTextRecognised(pages=len(parsed.unread) or len(parsed.pictures))
    raise EmptyFile


def _recognised(
    parsed: Parsed,
    file: IO[bytes],
    content_type: str,
    password: str,
    check: Callable[[], None],
    progress: Progress,
) -> tuple[Parsed, DocumentFailure | None]:
    """Return the document with the text of its drawn pages, and the last failure of a page."""
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
        if _weight(found) > _weight(REFERENCE.sub("", texts[number])) * BETTER:
            shown = [match.group() for match in REFERENCE.finditer(texts[number])]
            texts[number] = "\n\n".join([*shown, found])
    metadata = dict(parsed.metadata)
    if recognised:
        metadata["recognised_pages"] = recognised
    if unread:
        metadata["unread_pages"] = unread
    markdown, marks = join_pages(texts.items())
    return replace(parsed, markdown=markdown, pages=marks, metadata=metadata), failure


def _captioned(
    parsed: Parsed, workspace_id: UUID | None, check: Callable[[], None], progress: Progress, *, facts: bool
) -> Parsed:
    """Return the document with words for its pictures; one that is a picture itself has been read already.

    With ``facts`` such a one without words gets what else is known of it.
    """
    metadata = dict(parsed.metadata)
    itself = "picture" in metadata
    texts = {} if itself else captions.recognised(parsed.pictures, check, progress)
    seen, error = captions.described(parsed.pictures, workspace_id, check, progress)
    if error:
        metadata["not_described"] = error.code
        if itself and not without_references(parsed.markdown).strip():
            raise DescriptionFailed(reason=error.details.get("reason", error.code)) from error
    told = {one.name: "\n\n".join(filter(None, (seen.get(one.name), texts.get(one.name)))) for one in parsed.pictures}
    if itself and facts and not seen and not without_references(parsed.markdown).strip():
        told = {parsed.pictures[0].name: _facts(metadata)}
    done: set[str] = set()
    pages = {number: captions.written(text, told, done) for number, text in _texts(parsed).items()}
    markdown, marks = join_pages(pages.items())
    return replace(parsed, markdown=markdown, pages=marks if parsed.pages else [], metadata=metadata)


def _texts(parsed: Parsed) -> dict[int, str]:
    """Return each page's Markdown by its number; all of it as one page where the format has none."""
    if not parsed.pages:
        return {1: parsed.markdown}
    ends = [start for _number, start in parsed.pages[1:]] + [len(parsed.markdown)]
    return {
        number: parsed.markdown[start:end].strip("\n") for (number, start), end in zip(parsed.pages, ends, strict=True)
    }


def _weight(text: str) -> int:
    return sum(not character.isspace() for character in text)


def _facts(metadata: dict[str, object]) -> str:
    """Return what is known of a picture on which nothing is written."""
    size = f"{metadata['picture']}, {metadata['width']} × {metadata['height']} px"
    return "\n\n".join(str(fact) for fact in (size, metadata.get("description"), metadata.get("created")) if fact)
