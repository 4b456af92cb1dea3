"""What a page that watches documents has to be told: the rows that changed, and those that are gone."""

from collections.abc import Sequence

from apps.knowledge.models import Document
from apps.knowledge.querysets import DocumentQuerySet


def seen_as(document: Document) -> str:
    """Return a document's id and all of its state that a row shows."""
    stopping = int(document.cancel_requested)
    return f"{document.pk}~{document.status}~{document.attempt}~{document.stage}~{document.progress:.2f}~{stopping}"


def changes(documents: DocumentQuerySet, shown: Sequence[str]) -> tuple[list[Document], list[str]]:
    """Return the documents that look different from what is shown, and the ids that are not there any more.

    A row that has not changed is left alone, so that nothing moves under a reader's pointer.
    """
    ids = [entry.partition("~")[0] for entry in shown]
    rows = list(documents.among(ids))
    gone = [pk for pk in ids if pk not in {str(row.pk) for row in rows}]
    return [row for row in rows if seen_as(row) not in shown], gone
