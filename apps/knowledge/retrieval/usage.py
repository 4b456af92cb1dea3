"""Which passages have been sources of answers: one statement an answer, so that the others can be named."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

# Plan: chunks by primary key, then one upsert each. In one order, so that two answers do not wait for each other.
NOTE = """
INSERT INTO knowledge_retrievedpassage AS r (document_id, content_hash, times, last_at)
SELECT DISTINCT p.document_id, p.content_hash, 1, now()
FROM knowledge_chunk c
JOIN knowledge_chunk p ON p.id = CASE WHEN c.level = 1 THEN c.parent_id ELSE c.id END
WHERE c.id = ANY(%s)
ORDER BY p.document_id, p.content_hash
ON CONFLICT (document_id, content_hash) DO UPDATE SET times = r.times + 1, last_at = excluded.last_at"""


async def note_retrieved(connection: Any, chunk_ids: Sequence[UUID]) -> None:
    """Count passages as sources of an answer, in the caller's transaction on psycopg's own connection."""
    if chunk_ids:
        await connection.execute(NOTE, (list(chunk_ids),))
