"""What a workspace's end and its export mean for knowledge."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from uuid import UUID

from django.core.files.storage import default_storage
from django.utils import timezone

from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces.exporting import as_lines
from apps.workspaces.models import User, Workspace

LONG_AGO = timedelta(days=1)  # longer than any Undo
PIECE_BYTES = 1 << 20


def erase_workspace(workspace_id: UUID) -> bool:
    """Delete all bases; the sweeper erases rows and files. True once none is left."""
    bases = KnowledgeBase.objects.filter(workspace=workspace_id)
    before = timezone.now() - LONG_AGO
    bases.exclude(deleted_at__lt=before).update(deleted_at=before)
    return not bases.exists()


def export(workspace: Workspace, actor: User) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Export readable bases, and each readable document's facts, original and read text."""
    bases = KnowledgeBase.objects.visible_to(actor).filter(workspace=workspace)
    columns = ("id", "name", "description", "restricted", "chunker", "chunker_settings", "embedding_model")
    yield "knowledge-bases.jsonl", as_lines(list(bases.values(*columns)))
    documents = Document.objects.visible_to(actor).filter(workspace=workspace).order_by("pk")
    facts = ("id", "knowledge_base_id", "folder_id", "name", "content_type", "size_bytes", "sha256", "status")
    yield "documents.jsonl", as_lines(list(documents.values(*facts, "restricted", "metadata", "created_at")))
    for pk in list(documents.values_list("pk", flat=True)):
        document = documents.filter(pk=pk).first()  # a right withdrawn meanwhile counts
        if document is None:
            continue
        for key, name in ((document.file.name, "original"), (document.markdown_key, "text.md")):
            if key and default_storage.exists(key):
                yield f"documents/{document.pk}/{name}", _pieces(key)


def _pieces(key: str) -> Iterator[bytes]:
    with default_storage.open(key, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
