"""Pages of PDF documents as people know them, drawn in the sandbox with a passage highlighted."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.http import HttpResponse

from apps.knowledge import sheets
from apps.knowledge.errors import BrokenFile, SandboxBusy
from apps.knowledge.models import Document
from apps.knowledge.parsers.content_types import PDF
from apps.knowledge.parsers.parsed import Picture
from apps.knowledge.sandbox import reader
from apps.knowledge.sandbox.limits import Limits
from apps.knowledge.services.documents import storing
from apps.workspaces.models import User

LIMITS = Limits(wall_s=8.0, cpu_s=8, output_bytes=32 << 20)  # somebody waits for it, and others for the sandbox
WAIT_S = 5.0  # for the sandbox; the text is there meanwhile
KEPT_S = 300  # by the reader's own browser: they step to and fro between sources


def can_be_drawn(document: Document) -> bool:
    """Whether a document has pages that can be shown as they are."""
    return document.content_type == PDF


def draw(document: Document, number: int, *, actor: User, start: str = "", end: str = "") -> Picture:
    """Return page ``number``, from 1, with what stands from ``start`` to ``end`` of the Markdown highlighted.

    Both come from an address, so anything may be in them. Where the words stand on one of the next pages, that page.

    Raises:
        SandboxBusy: the one before of theirs is being drawn, or those of others took too long.
        FileNotFoundError: the store has lost the original. StorageFailed: it does not answer.
        DocumentFailure: the page cannot be drawn.
    """
    with _one_of(actor.pk):
        marked = sheets.words_between(document, start, end)
        password = document.password.reveal() if document.password else ""
        with storing(), document.file.open("rb") as file:
            drawn = reader.read(file, PDF, page=number, marked=marked, password=password, limits=LIMITS, wait_s=WAIT_S)
    if not drawn.pictures:
        raise BrokenFile(reason="no picture")
    return drawn.pictures[0]


_drawing: dict[UUID, object] = {}


@contextmanager
def _one_of(person: UUID) -> Iterator[None]:
    """Hold a person's one place at this process's sandbox, so that their many tabs leave it to others."""
    mine = object()
    if _drawing.setdefault(person, mine) is not mine:
        raise SandboxBusy
    try:
        yield
    finally:
        del _drawing[person]


def answer(picture: Picture) -> HttpResponse:
    """Return a drawn page to be shown, and nothing that a browser would run."""
    response = HttpResponse(picture.data, content_type=picture.media_type)
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = f"private, max-age={KEPT_S}"
    return response
