"""The doors, compiled into SQL: what somebody may read, as a subquery of every statement here.

Rights are never decided in Python and never remembered: the subquery runs with the statement that
it guards, so a grant that was withdrawn a moment ago no longer counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces.doors import DoorQuery
from apps.workspaces.principals import Who

DOCUMENT_COLUMNS = ("id", "knowledge_base_id", "name", "chunk_count")
BASE_COLUMNS = ("id", "workspace_id", "embedding_model", "dimensions")

DOCUMENTS = DoorQuery[Document](lambda who: Document.objects.visible_to(who).order_by().values(*DOCUMENT_COLUMNS))
BASES = DoorQuery[KnowledgeBase](lambda who: KnowledgeBase.objects.visible_to(who).order_by().values(*BASE_COLUMNS))


@dataclass(frozen=True, slots=True)
class Scope:
    """A SELECT and its named parameters, which all begin with ``door_``."""

    sql: str
    parameters: Mapping[str, Any]


def readable_documents(who: Who) -> Scope:
    """Select DOCUMENT_COLUMNS of the documents that ``who`` may read."""
    return _scope(DOCUMENTS, who)


def readable_bases(who: Who) -> Scope:
    """Select BASE_COLUMNS of the knowledge bases that ``who`` may read."""
    return _scope(BASES, who)


def _scope(door: DoorQuery[Any], who: Who) -> Scope:
    sql, positional = door.statement(who)
    first, *rest = sql.split("%s")
    named = first + "".join(f"%(door_{number})s{part}" for number, part in enumerate(rest))
    return Scope(named, {f"door_{number}": value for number, value in enumerate(positional)})
