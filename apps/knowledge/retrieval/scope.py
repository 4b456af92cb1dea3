"""The doors, compiled into SQL: what somebody may read, as a subquery of every statement here.

Rights are never decided in Python and never remembered: the subquery runs with the statement that
it guards, so a grant that was withdrawn a moment ago no longer counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from apps.knowledge.models import Document, KnowledgeBase, Synonyms
from apps.knowledge.retrieval.filters import Filters
from apps.models.models import Kind, ModelConfig
from apps.workspaces.doors import DoorQuery
from apps.workspaces.principals import Who

DOCUMENT_COLUMNS = ("id", "knowledge_base_id", "name", "chunk_count")
BASE_COLUMNS = ("id", "workspace_id", "embedding_model", "dimensions", "profile", "reranker", "synonyms")


def _with_settings(who: Who) -> QuerySet[KnowledgeBase, Any]:
    own = Q(workspace=OuterRef("workspace")) | Q(workspace=None)
    rerankers = ModelConfig.objects.filter(own, kind=Kind.RERANK, enabled=True, is_default=True)
    bases = KnowledgeBase.objects.visible_to(who).order_by()
    found: QuerySet[KnowledgeBase, Any] = bases.annotate(
        profile=F("search_profile__chosen"),
        reranker=Exists(rerankers),
        synonyms=Exists(Synonyms.objects.filter(workspace=OuterRef("workspace"))),
    ).values(*BASE_COLUMNS)
    return found


DOCUMENTS = DoorQuery[Document](lambda who: Document.objects.visible_to(who).order_by().values(*DOCUMENT_COLUMNS))
BASES = DoorQuery[KnowledgeBase](_with_settings)


@dataclass(frozen=True, slots=True)
class Scope:
    """A SELECT and its named parameters, which all begin with ``door_``."""

    sql: str
    parameters: Mapping[str, Any]


def readable_documents(who: Who, filters: Sequence[Filters] = ()) -> Scope:
    """Select DOCUMENT_COLUMNS of the documents that ``who`` may read and that fit all ``filters``."""
    if not any(filters):
        return _scope(*DOCUMENTS.statement(who))
    documents = Document.objects.visible_to(who)
    for one in filters:
        documents = one.apply(documents)
    try:
        return _scope(*documents.order_by().values(*DOCUMENT_COLUMNS).query.sql_with_params())
    except EmptyResultSet:
        return _scope(f"SELECT * FROM {Document._meta.db_table} WHERE FALSE", ())  # noqa: S608


def readable_bases(who: Who) -> Scope:
    """Select BASE_COLUMNS of the knowledge bases that ``who`` may read.

    ``profile`` is the one saved with the base, ``reranker`` whether a rerank model is the default there, ``synonyms``
    whether its workspace has any.
    """
    return _scope(*BASES.statement(who))


def _scope(sql: str, positional: Sequence[Any]) -> Scope:
    """Name the parameters; one id has one name, however often it stands there."""
    known: dict[object, str] = {}
    names = tuple(
        known.setdefault(value if isinstance(value, UUID) else number, f"door_{number}")
        for number, value in enumerate(positional)
    )
    return Scope(_named(sql, names), dict(zip(names, positional, strict=True)))


@lru_cache(maxsize=500)
def _named(sql: str, names: tuple[str, ...]) -> str:
    first, *rest = sql.split("%s")
    return first + "".join(f"%({name})s{part}" for name, part in zip(names, rest, strict=True))
