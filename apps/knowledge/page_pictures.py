"""Pages of PDF documents as people know them, drawn in the sandbox with a passage highlighted."""

from django.http import HttpResponse

from apps.knowledge import sheets
from apps.knowledge.errors import BrokenFile
from apps.knowledge.models import Document
from apps.knowledge.parsers.content_types import PDF
from apps.knowledge.parsers.parsed import Picture
from apps.knowledge.sandbox import reader
from apps.knowledge.sandbox.limits import Limits

LIMITS = Limits(wall_s=20.0, cpu_s=15, output_bytes=32 << 20)  # somebody waits for it
KEPT_S = 300  # by the reader's own browser: they step to and fro between sources


def can_be_drawn(document: Document) -> bool:
    """Whether a document has pages that can be shown as they are."""
    return document.content_type == PDF


def draw(document: Document, number: int, *, start: str = "", end: str = "") -> Picture:
    """Return page ``number``, from 1, with what stands from ``start`` to ``end`` of the Markdown highlighted.

    Both come from an address, so anything may be in them. Where the words stand on one of the next pages, that page.

    Raises:
        FileNotFoundError: the store has lost the original.
        DocumentFailure: the page cannot be drawn.
    """
    marked = sheets.words_between(document, start, end)
    password = document.password.reveal() if document.password else ""
    with document.file.open("rb") as file:
        drawn = reader.read(file, PDF, page=number, marked=marked, password=password, limits=LIMITS)
    if not drawn.pictures:
        raise BrokenFile(reason="no picture")
    return drawn.pictures[0]


def answer(picture: Picture) -> HttpResponse:
    """Return a drawn page to be shown, and nothing that a browser would run."""
    response = HttpResponse(picture.data, content_type=picture.media_type)
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = f"private, max-age={KEPT_S}"
    return response
