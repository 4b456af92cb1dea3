"""Writes to knowledge bases and documents."""

from apps.knowledge.services.bases import create_knowledge_base, delete_knowledge_base, grant, revoke
from apps.knowledge.services.documents import (
    add_document,
    cancel_document,
    delete_document,
    reindex_document,
    reparse_document,
    restore_document,
    retry_document,
)
from apps.knowledge.services.ingestion import index_document, ingest_document, parse_document, take_turn
from apps.knowledge.services.sweeping import sweep, sweep_files, sweep_if_due

__all__ = [
    "add_document",
    "cancel_document",
    "create_knowledge_base",
    "delete_document",
    "delete_knowledge_base",
    "grant",
    "index_document",
    "ingest_document",
    "parse_document",
    "reindex_document",
    "reparse_document",
    "restore_document",
    "retry_document",
    "revoke",
    "sweep",
    "sweep_files",
    "sweep_if_due",
    "take_turn",
]
