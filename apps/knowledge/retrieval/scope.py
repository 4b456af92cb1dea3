"""The doors, compiled into SQL: what a person may read, as a subquery of every statement here.

Rights are never decided in Python and never remembered: the subquery runs with the statement that
it guards, so a grant that was withdrawn a moment ago no longer counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import EmptyResultSet
from django.db import models

from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces.models import User

DOCUMENT_COLUMNS = ("id", "knowledge_base_id", "name", "chunk_count")
DOORS_KEPT = 2_000  # compiled texts, of a few kilobytes each
BASE_COLUMNS = ("id", "workspace_id", "embedding_model", "dimensions")


@dataclass(frozen=True, slots=True)
class Scope:
    """A SELECT and its named parameters, which all begin with ``door_``."""

    sql: str
    parameters: Mapping[str, Any]


def readable_documents(user: User | AnonymousUser) -> Scope:
    """Select DOCUMENT_COLUMNS of the documents that ``user`` may read."""
    return _door(Document, DOCUMENT_COLUMNS, user)


def readable_bases(user: User | AnonymousUser) -> Scope:
    """Select BASE_COLUMNS of the knowledge bases that ``user`` may read."""
    return _door(KnowledgeBase, BASE_COLUMNS, user)


def _door(model: type[Document] | type[KnowledgeBase], columns: tuple[str, ...], user: User | AnonymousUser) -> Scope:
    """Compile a door, or take the text that was compiled for the same person before.

    Compiling costs 2 ms, a third of a small search. Only the text is kept, and only while all that
    goes into it besides the person is fixed: a door with a moment in time among its parameters is
    compiled anew each time.
    """
    key = (model, type(user), user.pk)
    known = _compiled_doors.get(key)
    if known is None:
        known = _compiled(model.objects.visible_to(user), columns)
        if all(isinstance(value, str | bool | int | UUID | None) for value in known.parameters.values()):
            if len(_compiled_doors) >= DOORS_KEPT:
                _compiled_doors.clear()
            _compiled_doors[key] = known
    return known


_compiled_doors: dict[tuple[type[models.Model], type, UUID | None], Scope] = {}


def _compiled(queryset: models.QuerySet[Any, Any], columns: tuple[str, ...]) -> Scope:
    try:
        sql, positional = queryset.order_by().values(*columns).query.sql_with_params()
    except EmptyResultSet:  # a door that is shut for everybody, such as that of the signed-out
        table = queryset.model._meta.db_table
        return Scope(f"SELECT {', '.join(columns)} FROM {table} WHERE FALSE", {})  # noqa: S608
    first, *rest = sql.split("%s")
    named = first + "".join(f"%(door_{number})s{part}" for number, part in enumerate(rest))
    return Scope(named, {f"door_{number}": value for number, value in enumerate(positional)})
