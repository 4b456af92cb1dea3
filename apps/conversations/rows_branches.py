"""The SQL of branches: a turn names the one that it follows, and the way back is the conversation as it was.

Each step of a walk is one look into an index (the primary key, or the one on ``parent_id``), and every
walk back is cut by a limit, so none costs more in a longer conversation.
"""

from uuid import UUID

from django.db import connection as django_connection

from apps.conversations.rows import Connection

_BACK = """
    WITH RECURSIVE path AS (
        SELECT id, parent_id, number, options, 1 AS depth FROM conversations_turn WHERE id = %s
        UNION ALL
        SELECT t.id, t.parent_id, t.number, t.options, depth + 1
        FROM path JOIN conversations_turn t ON t.id = path.parent_id WHERE depth < %s
    )
"""
PATH = f"{_BACK} SELECT id FROM path ORDER BY depth"  # noqa: S608 (our own text)
MESSAGES = f"""
    {_BACK} SELECT path.id, m.role, m.text, ARRAY(
        SELECT DISTINCT c.document_id::text FROM conversations_citation c
        WHERE c.message_id = m.id AND c.document_id IS NOT NULL
    ) AS documents FROM path JOIN conversations_message m ON m.turn_id = path.id
    ORDER BY path.number
"""  # noqa: S608
ATTACHMENTS = f"""
    {_BACK} SELECT number, a.id FROM path, jsonb_array_elements_text(
        CASE jsonb_typeof(options -> 'attachments') WHEN 'array' THEN options -> 'attachments' ELSE '[]' END
    ) WITH ORDINALITY AS named(id, place) JOIN conversations_attachment a ON a.id = named.id::uuid
    WHERE a.conversation_id = %s ORDER BY number, place
"""  # noqa: S608


def path_to(turn_id: UUID, *, limit: int) -> list[UUID]:
    """Return the turn and those before it on its branch, the newest first."""
    with django_connection.cursor() as cursor:
        cursor.execute(PATH, (turn_id, limit))
        return [row[0] for row in cursor.fetchall()]


def newest_below(turn_id: UUID) -> UUID:
    """Return the turn that was asked last among those that follow this one, itself where none does."""
    with django_connection.cursor() as cursor:
        cursor.execute(
            """
            WITH RECURSIVE below AS (
                SELECT id, number FROM conversations_turn WHERE id = %s
                UNION ALL
                SELECT t.id, t.number FROM below JOIN conversations_turn t ON t.parent_id = below.id
            )
            SELECT id FROM below ORDER BY number DESC LIMIT 1
            """,
            (turn_id,),
        )
        (found,) = cursor.fetchone()
        return UUID(str(found))


async def read_messages(connection: Connection, turn_id: UUID, *, limit: int) -> list[tuple[UUID, str, str, list[str]]]:
    """Return turn, role, text and sources' documents of the messages on the way to a turn, the oldest turn first."""
    cursor = await connection.execute(MESSAGES, (turn_id, limit))
    return [(row["id"], row["role"], row["text"], row["documents"]) for row in await cursor.fetchall()]


async def read_attachments(
    connection: Connection, conversation_id: UUID, turn_id: UUID | None, *, limit: int
) -> list[tuple[int, UUID]]:
    """Return turn number and id of what was attached on the way to a turn, in the order in which it came."""
    cursor = await connection.execute(ATTACHMENTS, (turn_id, limit, conversation_id))
    return [(row["number"], row["id"]) for row in await cursor.fetchall()]
