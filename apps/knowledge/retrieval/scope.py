"""The doors, compiled into SQL: what a person may read, as a subquery of every statement here.

Rights are never decided in Python and never remembered: the subquery runs with the statement that
it guards, so a grant that was withdrawn a moment ago no longer counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import EmptyResultSet
from django.db import models

from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces.models import User

DOCUMENT_COLUMNS = ("id", "knowledge_base_id", "name", "chunk_count")
BASE_COLUMNS = ("id", "workspace_id", "embedding_model", "dimensions")


@dataclass(frozen=True, slots=True)
class Scope:
    """A SELECT and its named parameters, which all begin with ``door_``."""

    sql: str
    parameters: Mapping[str, Any]


def readable_documents(user: User | AnonymousUser) -> Scope:
    """Select DOCUMENT_COLUMNS of the documents that ``user`` may read."""
    return _compiled(Document.objects.visible_to(user), DOCUMENT_COLUMNS)


def readable_bases(user: User | AnonymousUser) -> Scope:
    """Select BASE_COLUMNS of the knowledge bases that ``user`` may read."""
    return _compiled(KnowledgeBase.objects.visible_to(user), BASE_COLUMNS)


def _compiled(queryset: models.QuerySet[Any, Any], columns: tuple[str, ...]) -> Scope:
    try:
        sql, positional = queryset.order_by().values(*columns).query.sql_with_params()
    except EmptyResultSet:  # a door that is shut for everybody, such as that of the signed-out
        table = queryset.model._meta.db_table
        return Scope(f"SELECT {', '.join(columns)} FROM {table} WHERE FALSE", {})  # noqa: S608
    first, *rest = sql.split("%s")
    named = first + "".join(f"%(door_{number})s{part}" for number, part in enumerate(rest))
    return Scope(named, {f"door_{number}": value for number, value in enumerate(positional)})
