"""What a document would be cut into with other settings, without storing anything."""

from collections.abc import Mapping
from typing import Any

from django.core.files.base import File
from django.core.files.storage import default_storage

from apps.knowledge.chunkers.drafts import ChunkDraft
from apps.knowledge.errors import OriginalMissing
from apps.knowledge.models import Document
from apps.knowledge.services import indexing
from apps.knowledge.services.documents import storing
from apps.models import gateway


def chunk_preview(*, document: Document, chunker: str, chunker_settings: Mapping[str, Any]) -> list[ChunkDraft]:
    """Return what indexing would cut a document into; the same function does it.

    Raises:
        InvalidInput: there is no such chunker, or its settings cannot be used.
        OriginalMissing: the document has not been read yet, or its Markdown is gone.
        ModelUnavailable: the base's embedding model, whose tokens are counted, is not configured any more.
    """
    base = document.knowledge_base
    key = document.parsed.get("key") or document.markdown_key
    pages = document.parsed.get("pages") or document.metadata.get("pages", [])
    try:
        with storing(), default_storage.open(key or "missing", "rb") as stored:
            markdown = File(stored).read().decode()
    except FileNotFoundError as error:
        raise OriginalMissing from error
    model = gateway.resolve_reference("embedding", base.embedding_model, workspace_id=base.workspace_id)
    return indexing.cut(chunker, chunker_settings, markdown, pages, model)
