"""SQL on all of a base at once: vectors of another model put in place, a fact forgotten, one worker at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection

# The chunks that are there decide: what belongs to none is left out, what was switched off has no vector.
SWITCH = """
INSERT INTO knowledge_chunkvector (chunk_id, passage_id, knowledge_base_id, document_id, embedding)
SELECT c.id, CASE WHEN c.level = 1 THEN c.parent_id ELSE c.id END, c.knowledge_base_id, c.document_id, n.embedding
FROM knowledge_nextvector n JOIN knowledge_chunk c ON c.id = n.chunk_id
WHERE n.knowledge_base_id = %s AND n.embedding IS NOT NULL AND NOT c.disabled"""
# Who is indexed again finds its vectors by this, and by the number of those that the model refused.
RENAME = """
UPDATE knowledge_document d SET
    metadata = jsonb_set(d.metadata, '{indexed_as}', jsonb_build_array(d.name, %s::text)),
    failed_chunks = (SELECT count(*) FROM knowledge_nextvector n JOIN knowledge_chunk c ON c.id = n.chunk_id
                     WHERE n.document_id = d.id AND n.embedding IS NULL)
WHERE d.knowledge_base_id = %s AND d.generation > 0"""


def switch_vectors(base_id: UUID, model: str) -> None:
    """Put the vectors of the next model in the place of those that answer. In the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM knowledge_chunkvector WHERE knowledge_base_id = %s", [base_id])
        cursor.execute(SWITCH, [base_id])
        cursor.execute(RENAME, [model, base_id])


def forget_fact(base_id: UUID, key: str) -> None:
    """Take a fact away from all documents of a base."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE knowledge_document SET attributes = attributes - %s WHERE knowledge_base_id = %s"
            " AND jsonb_exists(attributes, %s)",
            [key, base_id, key],
        )


@contextmanager
def alone(lock: int, row: UUID) -> Iterator[bool]:
    """Hold an advisory lock on a row's work; False where another worker has it. Gone with the connection."""
    key = [lock, row.int & 0x7FFFFFFF]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        (mine,) = cursor.fetchone() or (False,)
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)
