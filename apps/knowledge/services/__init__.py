"""Writes to knowledge bases, folders, documents and jobs."""

from apps.knowledge.services.bases import (
    change_knowledge_base,
    create_knowledge_base,
    delete_knowledge_base,
    grant,
    revoke,
)
from apps.knowledge.services.batches import (
    cancel_documents,
    delete_documents,
    move_documents,
    restore_deleted,
    tag_documents,
)
from apps.knowledge.services.chunking import configure_chunker
from apps.knowledge.services.chunks import disable_chunk, discard_override, edit_chunk, enable_chunk
from apps.knowledge.services.documents import (
    cancel_document,
    delete_document,
    reindex_document,
    reparse_document,
    restore_document,
    retry_document,
)
from apps.knowledge.services.folders import create_folder, delete_folder, folder_at, move_folder, rename_folder
from apps.knowledge.services.ingestion import (
    NOTHING_WAITS,
    index_document,
    ingest_document,
    parse_document,
    take_turn,
)
from apps.knowledge.services.intake import add_document, replace_content
from apps.knowledge.services.jobs import (
    advance_jobs,
    advance_moves,
    cancel_job,
    join_upload,
    note_received,
    retry_job,
    start_job,
)
from apps.knowledge.services.metadata import add_metadata_field, delete_metadata_field, describe_document
from apps.knowledge.services.moving import dismiss_move, models_for, move_to_model
from apps.knowledge.services.searching import add_synonyms, delete_synonyms, save_search_profile
from apps.knowledge.services.sources import (
    add_page,
    add_questions,
    add_text,
    are_other_questions,
    edit_questions,
    edit_text,
    is_other_text,
    refresh_page,
    schedule_page,
    unlock_document,
)
from apps.knowledge.services.sweeping import pass_on, sweep, sweep_files, sweep_if_due

__all__ = [
    "NOTHING_WAITS",
    "add_document",
    "add_metadata_field",
    "add_page",
    "add_questions",
    "add_synonyms",
    "add_text",
    "advance_jobs",
    "advance_moves",
    "are_other_questions",
    "cancel_document",
    "cancel_documents",
    "cancel_job",
    "change_knowledge_base",
    "configure_chunker",
    "create_folder",
    "create_knowledge_base",
    "delete_document",
    "delete_documents",
    "delete_folder",
    "delete_knowledge_base",
    "delete_metadata_field",
    "delete_synonyms",
    "describe_document",
    "disable_chunk",
    "discard_override",
    "dismiss_move",
    "edit_chunk",
    "edit_questions",
    "edit_text",
    "enable_chunk",
    "folder_at",
    "grant",
    "index_document",
    "ingest_document",
    "is_other_text",
    "join_upload",
    "models_for",
    "move_documents",
    "move_folder",
    "move_to_model",
    "note_received",
    "parse_document",
    "pass_on",
    "refresh_page",
    "reindex_document",
    "rename_folder",
    "reparse_document",
    "replace_content",
    "restore_deleted",
    "restore_document",
    "retry_document",
    "retry_job",
    "revoke",
    "save_search_profile",
    "schedule_page",
    "start_job",
    "sweep",
    "sweep_files",
    "sweep_if_due",
    "tag_documents",
    "take_turn",
    "unlock_document",
]
