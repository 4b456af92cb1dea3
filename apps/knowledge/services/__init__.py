"""Writes to knowledge bases and documents."""

from apps.knowledge.services.bases import create_knowledge_base, delete_knowledge_base, grant, revoke
from apps.knowledge.services.documents import (
    add_document,
    cancel_document,
    delete_document,
    reparse_document,
    restore_document,
    retry_document,
)
from apps.knowledge.services.ingestion import ingest_document

__all__ = [
    "add_document",
    "cancel_document",
    "create_knowledge_base",
    "delete_document",
    "delete_knowledge_base",
    "grant",
    "ingest_document",
    "reparse_document",
    "restore_document",
    "retry_document",
    "revoke",
]
