"""Reading what is there: passages by id or in order, by pattern, and documents without their text.

Every statement is scoped by the compiled door (``scope``), so a right that was withdrawn a moment ago
no longer counts. Passages come back whole, in the shape that a search returns.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext_lazy as _
from psycopg.rows import DictRow

from apps.common.database import pool
from apps.common.errors import InvalidInput
from apps.common.text import storable
from apps.knowledge.models import Chunk
from apps.knowledge.retrieval.passages import Passage
from apps.knowledge.retrieval.scope import readable_documents
from apps.workspaces.models import User

PATTERN_TIMEOUT_MS = 3_000

# chunk by primary key or (document, generation, level, ordinal); documents by the door
PASSAGE = """
SELECT c.id AS chunk_id, c.document_id, c.knowledge_base_id, d.name AS document, c.text, c.heading,
       c.page, c.page_end, c.start, c."end"
FROM knowledge_chunk c JOIN ({door}) d ON d.id = c.document_id
"""
BY_ID = """
WHERE c.id IN (SELECT coalesce(k.parent_id, k.id) FROM knowledge_chunk k WHERE k.id = ANY(%(chunk_ids)s))
"""
IN_ORDER = """
WHERE c.document_id = %(document_id)s AND c.level = %(level)s AND c.ordinal >= %(first)s
ORDER BY c.ordinal LIMIT %(count)s
"""
# Reads the selected bases' passages one by one: a pattern has no index. Hence the time limit.
BY_PATTERN = """
WHERE c.knowledge_base_id = ANY(%(bases)s) AND c.level = %(level)s AND c.text ~* %(pattern)s
ORDER BY d.name, c.document_id, c.ordinal LIMIT %(limit)s
"""
DOCUMENTS = """
SELECT d.id AS document_id, d.name, b.name AS knowledge_base, f.status, f.content_type, f.page_count AS pages,
       f.chunk_count AS passages, f.size_bytes, f.created_at
FROM ({door}) d JOIN knowledge_document f ON f.id = d.id JOIN knowledge_knowledgebase b ON b.id = d.knowledge_base_id
WHERE d.knowledge_base_id = ANY(%(bases)s) AND (%(document_ids)s::uuid[] IS NULL OR d.id = ANY(%(document_ids)s))
ORDER BY f.created_at DESC, d.id LIMIT %(limit)s
"""


async def list_chunks(
    user: User | AnonymousUser,
    *,
    chunk_ids: Sequence[UUID] = (),
    document_id: UUID | None = None,
    first: int = 0,
    count: int = 10,
) -> list[Passage]:
    """Return passages by id (in the order of the ids), or a run of one document in its order.

    The id of a child brings its passage. What may not be read is left out, as if it were not there.
    """
    if document_id is not None:
        values = {"document_id": document_id, "level": Chunk.PARENT, "first": first, "count": count}
        return [_passage(row) for row in await _fetch(user, PASSAGE + IN_ORDER, values)]
    place = {chunk_id: number for number, chunk_id in enumerate(chunk_ids)}
    rows = await _fetch(user, PASSAGE + BY_ID, {"chunk_ids": list(place)})
    return sorted(map(_passage, rows), key=lambda passage: place.get(passage.chunk_id, len(place)))


async def grep_chunks(
    user: User | AnonymousUser, pattern: str, *, knowledge_bases: Sequence[UUID], limit: int = 10
) -> list[Passage]:
    """Return passages in which a regular expression occurs, without regard to case, by document and place.

    Raises:
        InvalidInput: PostgreSQL cannot read the pattern, or needs longer than 3 s for it.
    """
    values = {"bases": list(knowledge_bases), "level": Chunk.PARENT, "pattern": storable(pattern), "limit": limit}
    try:
        return [_passage(row) for row in await _fetch(user, PASSAGE + BY_PATTERN, values, PATTERN_TIMEOUT_MS)]
    except psycopg.errors.InvalidRegularExpression as error:
        raise InvalidInput(field="pattern", reason=_("it is not a regular expression")) from error
    except psycopg.errors.QueryCanceled as error:
        raise InvalidInput(field="pattern", reason=_("it takes too long; make it more exact")) from error


async def document_info(
    user: User | AnonymousUser,
    *,
    knowledge_bases: Sequence[UUID],
    document_ids: Sequence[UUID] = (),
    limit: int = 10,
) -> list[dict[str, Any]]:
    """Describe documents of the bases, the newest first, or those named; never their text."""
    values = {"bases": list(knowledge_bases), "document_ids": list(document_ids) or None, "limit": limit}
    rows = await _fetch(user, DOCUMENTS, values)
    return [
        {**row, "document_id": str(row["document_id"]), "created_at": f"{row['created_at']:%Y-%m-%d}"} for row in rows
    ]


async def _fetch(
    user: User | AnonymousUser, sql: str, values: Mapping[str, Any], timeout_ms: int = 10_000
) -> list[DictRow]:
    door = readable_documents(user)
    async with (await pool()).connection() as connection, connection.transaction():
        await connection.execute("SELECT set_config('statement_timeout', %s, true)", (str(timeout_ms),))
        cursor = await connection.execute(sql.format(door=door.sql).encode(), {**door.parameters, **values})
        return await cursor.fetchall()


def _passage(row: DictRow) -> Passage:
    return Passage(**row, score=0.0)
