"""Read without searching: passages by id or place, by regular expression, and documents' metadata.

Like search, each function is one statement behind the reader's compiled door, run at call time.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from django.utils.translation import gettext_lazy as _
from psycopg.rows import DictRow

from apps.common.database import pool
from apps.common.errors import InvalidInput, ServiceUnavailable
from apps.common.text import storable
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.passages import Passage
from apps.knowledge.retrieval.scope import readable_documents
from apps.workspaces.principals import Who

MOST_PASSAGES, MOST_DOCUMENTS, MOST_PLACES = 50, 100, 2**31 - 1
LONGEST_PATTERN = 500
GREP_TIMEOUT_MS, READ_TIMEOUT_MS = 2_000, 5_000

_COLUMNS = """c.id AS chunk_id, c.document_id, c.knowledge_base_id, d.name AS document, c.text, c.heading,
       c.page, c.page_end, c.start, c."end", CASE c.level WHEN 0 THEN c.ordinal END AS place"""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_OPTIONS = re.compile(r"^\(\?[a-zA-Z]+\)")
_NAMED_GROUP = re.compile(r"\(\?P<\w+>")


class PatternRejected(InvalidInput):
    """A regular expression that PostgreSQL cannot compile; ``reason`` is its own."""

    code = "pattern_rejected"
    user_message = _("This is not a usable regular expression: %(reason)s. Nothing was searched.")


class PatternTooSlow(InvalidInput):
    """A regular expression took longer than it may."""

    code = "pattern_too_slow"
    user_message = _("This regular expression takes too long here. Use a simpler one, or words of the text itself.")


async def list_chunks(
    user: Who,
    *,
    chunk_ids: Sequence[UUID] = (),
    document_id: UUID | None = None,
    first: int = 0,
    count: int = 10,
    filters: Sequence[Filters] = (),
) -> list[Passage]:
    """Return whole passages: those named, in that order, or a run of one document in reading order.

    What ``user`` may not read, or what is gone, is left out.

    Args:
        user: the reader.
        chunk_ids: ids of passages, or of children, which stand for their passage.
        document_id: the document to read from, if no ids are given.
        first: the place of the first passage to return, from 0; one that is switched off keeps its place.
        count: how many, at most MOST_PASSAGES.
        filters: what the documents must fit.

    Plan: primary keys of chunks, or the unique index (document, generation, level, ordinal).
    """
    door = readable_documents(user, filters)
    if document_id is not None:
        wanted = """c.level = 0 AND NOT c.disabled AND c.document_id = %(document)s AND c.ordinal >= %(first)s
            ORDER BY c.ordinal LIMIT %(count)s"""
    else:
        wanted = """NOT c.disabled
            AND c.id IN (SELECT CASE level WHEN 1 THEN parent_id ELSE id END FROM knowledge_chunk
                         WHERE id = ANY(%(chunks)s))
            ORDER BY (SELECT min(array_position(%(chunks)s, k.id)) FROM knowledge_chunk k
                      WHERE k.id = ANY(%(chunks)s) AND (k.id = c.id OR (k.level = 1 AND k.parent_id = c.id)))
            LIMIT %(count)s"""
    parameters = {
        **door.parameters,
        "document": document_id,
        "chunks": list(chunk_ids)[:MOST_PASSAGES],
        "first": min(max(first, 0), MOST_PLACES),
        "count": MOST_PASSAGES if document_id is None else min(max(count, 0), MOST_PASSAGES),
    }
    sql = f"SELECT {_COLUMNS} FROM knowledge_chunk c JOIN ({door.sql}) d ON d.id = c.document_id WHERE {wanted}"  # noqa: S608
    return [_passage(row) for row in await _rows(sql, parameters, READ_TIMEOUT_MS)]


async def grep_chunks(
    user: Who, pattern: str, *, knowledge_bases: Sequence[UUID], limit: int = 10, filters: Sequence[Filters] = ()
) -> list[Passage]:
    """Return the passages of the bases that match a regular expression, document by document.

    Upper and lower case are alike; ``^``, ``$`` and ``.`` mind line ends, as in grep. ``focus`` is
    where the first match begins. PostgreSQL's engine runs it, under a time limit: it does not
    backtrack, and a pattern that is too costly all the same ends as an error, not as a hang.

    Args:
        user: the reader.
        pattern: the expression, up to LONGEST_PATTERN characters; ``\\b`` and named groups may be used.
        knowledge_bases: where to look; narrows what ``user`` may read.
        limit: how many passages, at most MOST_PASSAGES.
        filters: what their documents must fit.

    Raises:
        PatternRejected: it is blank, too long, or cannot be compiled.
        PatternTooSlow: the time ran out.

    Plan: bitmap scan of ``trigrams_of_base`` where the pattern has three literal characters in a
    row, else the bases' passages one by one; linear in their text.
    """
    pattern = storable(pattern)
    if not pattern.strip() or len(pattern) > LONGEST_PATTERN:
        raise PatternRejected(
            field="pattern", reason=_("it must have 1 to %(limit)d characters") % {"limit": LONGEST_PATTERN}
        )
    door = readable_documents(user, filters)
    parameters = {
        **door.parameters,
        "pattern": postgres_pattern(pattern),
        "bases": list(knowledge_bases),
        "limit": min(max(limit, 0), MOST_PASSAGES),
    }
    sql = f"""
SELECT {_COLUMNS}, regexp_instr(c.text, %(pattern)s) - 1 AS focus
FROM knowledge_chunk c JOIN ({door.sql}) d ON d.id = c.document_id
WHERE c.level = 0 AND NOT c.disabled AND c.knowledge_base_id = ANY(%(bases)s) AND c.text ~ (SELECT %(pattern)s)
ORDER BY d.name, c.document_id, c.ordinal LIMIT %(limit)s"""  # noqa: S608
    try:
        rows = await _rows(sql, parameters, GREP_TIMEOUT_MS)
    except psycopg.errors.InvalidRegularExpression as error:
        reason = (error.diag.message_primary or "").removeprefix("invalid regular expression: ")
        raise PatternRejected(field="pattern", reason=reason) from None
    except (psycopg.errors.QueryCanceled, psycopg.errors.InternalError_, psycopg.errors.ProgramLimitExceeded):
        raise PatternTooSlow(field="pattern") from None  # no time, or no memory, for its states
    return [_passage(row) for row in rows]


async def document_info(
    user: Who,
    *,
    document_ids: Sequence[UUID] = (),
    knowledge_bases: Sequence[UUID] | None = None,
    limit: int = 10,
    filters: Sequence[Filters] = (),
) -> list[dict[str, Any]]:
    """Return what is known about documents besides their text, the newest first; ``total`` is how many there are.

    Args:
        user: the reader.
        document_ids: which documents; all readable ones if empty.
        knowledge_bases: keep those of these bases; None keeps all.
        limit: how many, at most MOST_DOCUMENTS.
        filters: what they must fit.

    Plan: primary key of documents, or ``document_newest`` by base.
    """
    door = readable_documents(user, filters)
    parameters = {
        **door.parameters,
        "documents": list(document_ids) or None,
        "bases": None if knowledge_bases is None else list(knowledge_bases),
        "limit": min(max(limit, 0), MOST_DOCUMENTS),
    }
    sql = f"""
SELECT d.id AS document_id, d.name, b.name AS knowledge_base, d.status, d.error_code, d.content_type, d.size_bytes,
       d.page_count AS pages, d.chunk_count AS passages, d.created_at, d.tags, f.name AS folder,
       f.id::text AS folder_id, d.attributes AS facts, count(*) OVER () AS total
FROM knowledge_document d LEFT JOIN knowledge_folder f ON f.id = d.folder_id
JOIN ({door.sql}) readable ON readable.id = d.id
JOIN knowledge_knowledgebase b ON b.id = d.knowledge_base_id
WHERE (%(documents)s::uuid[] IS NULL OR d.id = ANY(%(documents)s::uuid[]))
  AND (%(bases)s::uuid[] IS NULL OR d.knowledge_base_id = ANY(%(bases)s::uuid[]))
ORDER BY d.created_at DESC, d.id LIMIT %(limit)s"""  # noqa: S608
    rows = await _rows(sql, parameters, READ_TIMEOUT_MS)
    return [
        row | {"document_id": str(row["document_id"]), "created_at": f"{row['created_at']:%Y-%m-%d}"} for row in rows
    ]


async def readable(
    user: Who,
    document_ids: Collection[UUID],
    *,
    knowledge_bases: Sequence[UUID] | None = None,
    filters: Sequence[Filters] = (),
) -> frozenset[UUID]:
    """Return which of some documents are there and ``user``'s to read, at this moment.

    ``knowledge_bases`` and ``filters`` narrow it to those of these bases, and to those that fit.

    Plan: primary key of documents.
    """
    if not document_ids:
        return frozenset()
    door = readable_documents(user, filters)
    sql = f"""
SELECT d.id FROM ({door.sql}) d WHERE d.id = ANY(%(documents)s)
  AND (%(bases)s::uuid[] IS NULL OR d.knowledge_base_id = ANY(%(bases)s::uuid[]))"""  # noqa: S608
    bases = None if knowledge_bases is None else list(knowledge_bases)
    parameters = {**door.parameters, "documents": list(document_ids), "bases": bases}
    rows = await _rows(sql, parameters, READ_TIMEOUT_MS)
    return frozenset(row["id"] for row in rows)


def postgres_pattern(pattern: str) -> str:
    r"""Write a pattern as PostgreSQL's engine wants it: ``\b`` is ``\y`` there, groups have no names.

    What options the pattern begins with is replaced by ours: case-insensitive, minding line ends.
    """
    pattern = _NAMED_GROUP.sub("(", _OPTIONS.sub("", pattern))
    return "(?in)" + _ESCAPE.sub(lambda found: {"b": r"\y", "B": r"\Y"}.get(found[1], found[0]), pattern)


async def _rows(sql: str, parameters: Mapping[str, Any], timeout_ms: int) -> list[DictRow]:
    try:
        async with (await pool()).connection() as connection, connection.pipeline(), connection.transaction():
            await connection.execute("SELECT set_config('statement_timeout', %s, true)", [f"{timeout_ms}ms"])
            cursor = await connection.execute(sql, parameters)
            return await cursor.fetchall()
    except psycopg.OperationalError as error:
        if isinstance(error, psycopg.errors.QueryCanceled) and timeout_ms == GREP_TIMEOUT_MS:
            raise
        raise ServiceUnavailable(service=_("The database")) from error


def _passage(row: DictRow) -> Passage:
    return Passage(**row, score=1.0)
