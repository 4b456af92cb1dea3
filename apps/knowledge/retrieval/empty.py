"""Why a search found nothing: asked only then, in one statement."""

from collections.abc import Sequence
from uuid import UUID

from apps.common.database import pool
from apps.knowledge.retrieval.scope import Scope, readable_documents
from apps.workspaces.principals import Who


async def reason(user: Who, bases: Sequence[UUID], filtered: Scope) -> str:
    """Return "nothing_indexed", "filter" or "no_match".

    Plan: index on documents by base; one pass over the bases' documents.
    """
    everything = readable_documents(user)
    sql = f"""
SELECT coalesce(sum(chunk_count), 0) AS passages FROM ({everything.sql}) d WHERE knowledge_base_id = ANY(%(bases)s)"""  # noqa: S608
    fitting = f"""
SELECT coalesce(sum(chunk_count), 0) AS passages FROM ({filtered.sql}) d WHERE knowledge_base_id = ANY(%(bases)s)"""  # noqa: S608
    async with (await pool()).connection() as connection:
        cursor = await connection.execute(sql, {**everything.parameters, "bases": list(bases)})
        (whole,) = await cursor.fetchall()
        if not whole["passages"]:
            return "nothing_indexed"
        cursor = await connection.execute(fitting, {**filtered.parameters, "bases": list(bases)})
        (there,) = await cursor.fetchall()
    return "no_match" if there["passages"] else "filter"
