"""Opening what an answer cites: the text as it was read, and its place in the document of today."""

from dataclasses import dataclass
from uuid import UUID

from django.core.files.storage import default_storage

from apps.conversations import errors
from apps.conversations.models import Citation
from apps.knowledge.models import Document
from apps.workspaces.models import User

AROUND = 4_000  # characters of the document shown on each side


@dataclass(frozen=True, slots=True)
class OpenedCitation:
    """A citation with the document around it.

    ``text`` is what was read when the answer was written. ``document`` is set where the reader may
    read the document now; ``before`` and ``after`` are then its Markdown around the passage.
    ``changed``: the document no longer holds the text. ``error`` says why there is no document
    (``document_not_readable``).
    """

    citation: Citation
    text: str
    document: Document | None = None
    before: str = ""
    after: str = ""
    changed: bool = False
    error: errors.DocumentNotReadable | None = None


def open_citation(*, citation: Citation, actor: User) -> OpenedCitation:
    """Return the cited text and, where ``actor`` may still read the document, what stands around it."""
    if citation.document_id is None:
        return OpenedCitation(citation, citation.text)
    document = _readable(citation.document_id, actor)
    if document is None:
        return OpenedCitation(citation, citation.text, error=errors.DocumentNotReadable())
    markdown = _markdown(document)
    start = _place(markdown, citation)
    if start is None:
        return OpenedCitation(citation, citation.text, document=document, changed=True)
    end = start + len(citation.text)
    before, after = markdown[max(0, start - AROUND) : start], markdown[end : end + AROUND]
    return OpenedCitation(citation, citation.text, document=document, before=before, after=after)


def _readable(document_id: UUID, actor: User) -> Document | None:
    return Document.objects.visible_to(actor).select_related("knowledge_base").filter(pk=document_id).first()


def _markdown(document: Document) -> str:
    """Return the live generation's text; nothing where its file is gone, which counts as changed."""
    if not document.markdown_key:
        return ""
    try:
        with default_storage.open(document.markdown_key, "rb") as stored:
            text: str = stored.read().decode()
            return text
    except FileNotFoundError:
        return ""


def _place(markdown: str, citation: Citation) -> int | None:
    """Return where the cited text stands: at its old place, else wherever it moved to."""
    text, start = citation.text, citation.start
    if not text:
        return None
    if start is not None and markdown.startswith(text, start):
        return start
    found = markdown.find(text)
    return found if found >= 0 else None
