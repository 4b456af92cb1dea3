"""The SQL of turns: begin, events, ending, recovery, and the sign-in of sockets.

Hot paths, so by hand on the async pool: one round trip to begin a turn, one insert for the events
of all turns, one transaction to end one. Everything may be repeated after a lost connection.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4, uuid5

import orjson
from django.db.models import QuerySet
from psycopg import AsyncConnection
from psycopg.rows import DictRow as DictRow

from apps.agents.turn import Source
from apps.common import logs
from apps.common.database import pool
from apps.common.text import storable
from apps.conversations.log import Row, encode
from apps.conversations.markdown import NUMBER
from apps.knowledge.retrieval.usage import note_retrieved
from apps.workspaces.doors import DoorQuery
from apps.workspaces.principals import Principal, Who

Connection = AsyncConnection[DictRow]

WAITING = 5  # questions of one conversation that wait behind the one being answered
PATIENCE_S = 5.0  # a person waits for a connection at most this long

CHANNEL = "ks_turns"  # NOTIFY: "stop <turn>", "watch <turn>", "rows <turn>"


class Door:
    """A door's query for one row, compiled once: ``build(who, row)`` makes the queryset (see DoorQuery)."""

    def __init__(self, build: Callable[[Principal, UUID], QuerySet[Any, Any]]) -> None:
        self._query: DoorQuery[Any] = DoorQuery(lambda who, row: build(who, row))

    def bound(self, who: Who, row: UUID) -> tuple[str, tuple[Any, ...]]:
        """Return SQL and parameters for this caller and row."""
        return self._query.statement(who, row=row)


def compiled(queryset: QuerySet[Any, Any]) -> tuple[str, tuple[Any, ...]]:
    """Return a queryset's SQL and parameters, to run on the async pool."""
    return queryset.query.sql_with_params()


@asynccontextmanager
async def connected() -> AsyncGenerator[Connection, None]:
    """Lend a connection that keeps its statements prepared: half the time of a turn's first insert is planning.

    The pool's other users plan anew each time, since their best plan depends on what is searched.
    """
    async with (await pool()).connection(timeout=PATIENCE_S) as connection:
        connection.prepare_threshold = 1
        try:
            yield connection
        finally:
            connection.prepare_threshold = None


async def begin(
    connection: Connection,
    door: tuple[str, tuple[Any, ...]],
    *,
    asker: Principal,
    turn_id: UUID,
    client_id: str,
    question: str,
    title: str,
    options: dict[str, Any],
    process: str,
    parent: UUID | None = None,
    first: bool = False,
) -> DictRow | None:
    """Insert a turn, the person's message and what the audit log says, if the door lets them; None if it does not.

    The turn follows ``parent``, by default the newest one, or none (``first``). It is queued where
    another one is not over. Where ``number`` is null nothing was inserted: the conversation has no such
    parent, or ``WAITING`` turns of it wait. ``follows`` is the parent's number, ``attached`` says
    whether anything was ever attached.

    One statement is one transaction and one round trip. It does not wait for the disk: should the
    database server die in the next moment, the process that runs the turn puts the row back
    (``put_back``). Raises psycopg's UniqueViolation: two began at once, or the client id has been here.
    """
    sql, parameters = door
    cursor = await connection.execute(
        f"""
        WITH door AS ({sql}),
        parent AS (
            SELECT t.id, t.number FROM conversations_turn t, door
            WHERE t.conversation_id = door.id AND NOT %s AND t.id = coalesce(%s::uuid, (
                SELECT id FROM conversations_turn WHERE conversation_id = door.id ORDER BY number DESC LIMIT 1))
        ),
        active AS (
            SELECT count(*) AS all_of_them, count(*) FILTER (WHERE status = 'queued') AS waiting
            FROM conversations_turn t, door WHERE t.conversation_id = door.id AND t.status IN ('queued', 'running')
        ),
        new AS (
            INSERT INTO conversations_turn (id, conversation_id, parent_id, number, client_id, status, question,
                options, model, owner_process, heartbeat_at, stop_requested, last_seq, usage, started_at)
            SELECT %s, door.id, (SELECT parent.id FROM parent), 1 + coalesce(
                    (SELECT max(number) FROM conversations_turn WHERE conversation_id = door.id), 0),
                %s, CASE WHEN active.all_of_them > 0 THEN 'queued' ELSE 'running' END, %s, %s::jsonb, '', %s, now(),
                false, 0, '{{}}', now() FROM door, active
            WHERE active.waiting < {WAITING} AND (%s::uuid IS NULL OR EXISTS (SELECT 1 FROM parent))
            RETURNING conversation_id, number, parent_id, status
        ),
        message AS (
            INSERT INTO conversations_message (id, conversation_id, turn_id, role, text, created_at)
            SELECT %s, conversation_id, %s, 'user', %s, now() FROM new
        ),
        asked AS (
            INSERT INTO workspaces_auditevent (id, at, workspace_id, kind, actor_id, credential_id, action, target_kind,
                target_id, target_name, "right", ip, details)
            SELECT %s, now(), door.workspace_id, %s, %s, %s, 'question.asked', 'conversation', door.id, '', '', %s,
                jsonb_build_object('turn', %s::text) FROM new, door
        ),
        conversation AS (
            UPDATE conversations_conversation SET changed_at = now(), archived_at = NULL,
                title = coalesce(nullif(title, ''), %s)
            WHERE id = (SELECT conversation_id FROM new)
        )
        SELECT door.*, new.number, new.parent_id, new.status, active.waiting,
            (SELECT parent.number FROM parent) AS follows,
            EXISTS (SELECT 1 FROM conversations_attachment a WHERE a.conversation_id = door.id) AS attached,
            set_config('synchronous_commit', 'off', true)
        FROM door CROSS JOIN active LEFT JOIN new ON true
        """,  # noqa: S608 (the door's own SQL)
        (
            *parameters, first, parent, turn_id, client_id, question, encode(options).decode(), process, parent,
            message_id(turn_id, "user"), turn_id, question,
            uuid4(), asker.kind, asker.user_id, asker.key_id or asker.widget_id, logs.client_ip.get(), turn_id, title,
        ),
    )  # fmt: skip
    return await cursor.fetchone()


async def take_attachments(connection: Connection, conversation_id: UUID, attachments: list[UUID]) -> None:
    """Give files that wait for a question to this conversation."""
    await connection.execute(
        "UPDATE conversations_attachment SET conversation_id = %s WHERE id = ANY(%s) AND conversation_id IS NULL",
        (conversation_id, attachments),
    )


async def put_back(connection: Connection, turn_id: UUID, conversation_id: UUID, question: str, process: str) -> bool:
    """Insert a turn that its process runs and the database lost. False if its conversation is gone."""
    async with connection.transaction():
        cursor = await connection.execute(
            """
            INSERT INTO conversations_turn (id, conversation_id, parent_id, number, client_id, status, question,
                options, model, owner_process, heartbeat_at, stop_requested, last_seq, usage, started_at)
            SELECT %s, id, (SELECT t.id FROM conversations_turn t WHERE t.conversation_id = c.id
                    ORDER BY number DESC LIMIT 1),
                1 + coalesce((SELECT max(number) FROM conversations_turn WHERE conversation_id = c.id), 0),
                %s, 'interrupted', %s, '{}', '', %s, now(), false, 0, '{}', now()
            FROM conversations_conversation c WHERE id = %s ON CONFLICT DO NOTHING
            """,
            (turn_id, turn_id.hex, question, process, conversation_id),
        )
        if not cursor.rowcount:
            return False
        await connection.execute(
            "INSERT INTO conversations_message (id, conversation_id, turn_id, role, text, created_at)"
            " VALUES (%s, %s, %s, 'user', %s, now()) ON CONFLICT DO NOTHING",
            (message_id(turn_id, "user"), conversation_id, turn_id, question),
        )
    return True


async def find_turn_of(connection: Connection, conversation_id: UUID, client_id: str) -> DictRow | None:
    """Return the turn that this client id began."""
    cursor = await connection.execute(
        "SELECT id, number, status, question FROM conversations_turn WHERE conversation_id = %s AND client_id = %s",
        (conversation_id, client_id),
    )
    return await cursor.fetchone()


def message_id(turn_id: UUID, role: str) -> UUID:
    """Return the id of a turn's message: the same however often it is written."""
    return uuid5(turn_id, role)


async def insert_events(connection: Connection, events: Sequence[tuple[UUID, Row]]) -> None:
    """Store events of many turns in one statement; those already there, or of erased turns, are passed over.

    One JSON parameter costs 1 µs an event; five arrays, which psycopg writes item by item, 7.
    """
    await connection.execute(
        """
        INSERT INTO conversations_turnevent (turn_id, seq, type, at_ms, data)
        SELECT e.* FROM json_to_recordset(%s::json) AS e(turn uuid, seq int, type text, at_ms int, data jsonb)
        WHERE EXISTS (SELECT 1 FROM conversations_turn t WHERE t.id = e.turn)
        ON CONFLICT DO NOTHING
        """,
        (
            orjson.dumps(
                [
                    {"turn": turn, "seq": seq, "type": kind, "at_ms": at_ms, "data": orjson.Fragment(data)}
                    for turn, (seq, kind, at_ms, data) in events
                ]
            ).decode(),
        ),
    )


async def read_events(connection: Connection, turn_id: UUID, *, after: int, limit: int = 500) -> list[DictRow]:
    """Return a turn's stored events above ``after``, in order."""
    cursor = await connection.execute(
        "SELECT seq, type, at_ms, data::text AS data FROM conversations_turnevent"
        " WHERE turn_id = %s AND seq > %s ORDER BY seq LIMIT %s",
        (turn_id, after, limit),
    )
    return await cursor.fetchall()


class TurnLost(Exception):
    """The database does not know the turn: it died before the row was on its disk, or somebody erased it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """All that is stored when a turn ends. ``seq`` is that of its last event."""

    turn_id: UUID
    conversation_id: UUID
    status: str
    text: str
    seq: int
    at_ms: int
    event: dict[str, Any]
    sources: Sequence[Source] = ()
    model: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None


async def store_ending(connection: Connection, ending: Ending) -> None:
    """Store answer, citations, status and last event in one transaction.

    The process that ran the turn has the last word: where another took it for dead meanwhile, the
    verdict and its event are replaced. Raises TurnLost where there is no such turn.
    """
    answer = message_id(ending.turn_id, "assistant")
    async with connection.transaction():
        cursor = await connection.execute(
            "UPDATE conversations_turn SET status = %s, last_seq = %s, model = %s, usage = %s::jsonb,"
            " error = %s::jsonb, finished_at = now() WHERE id = %s",
            (
                ending.status, ending.seq, ending.model[:200], encode(ending.usage).decode(),
                encode(ending.error).decode() if ending.error else None, ending.turn_id,
            ),
        )  # fmt: skip
        if not cursor.rowcount:
            raise TurnLost
        await store_answer(connection, ending.turn_id, ending.conversation_id, ending.text, ending.sources)
        await connection.execute(
            "DELETE FROM conversations_turnevent WHERE turn_id = %s AND seq >= %s", (ending.turn_id, ending.seq)
        )
        row = (ending.seq, "turn.finished", ending.at_ms, encode({**ending.event, "message": str(answer)}).decode())
        await insert_events(connection, [(ending.turn_id, row)])
        await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"rows {ending.turn_id}"))


async def store_answer(
    connection: Connection, turn_id: UUID, conversation_id: UUID, text: str, sources: Iterable[Source]
) -> None:
    """Write the answer's message and its citations, replacing what an earlier attempt wrote."""
    answer = message_id(turn_id, "assistant")
    cited = {int(n) for n in NUMBER.findall(text)}
    await connection.execute(
        "INSERT INTO conversations_message (id, conversation_id, turn_id, role, text, created_at)"
        " VALUES (%s, %s, %s, 'assistant', %s, now()) ON CONFLICT (id) DO UPDATE SET text = excluded.text",
        (answer, conversation_id, turn_id, text),
    )
    await connection.execute("DELETE FROM conversations_citation WHERE message_id = %s", (answer,))
    columns = [
        (
            uuid5(answer, str(s.n)), s.n, s.kind[:10], s.document_id, s.chunk_id, storable(s.document)[:255], s.page,
            storable(s.heading), storable(s.url), storable(s.text), s.start, s.end, s.n in cited,
        )
        for s in {source.n: source for source in sources}.values()
    ]  # fmt: skip
    if columns:
        await connection.execute(
            """
            INSERT INTO conversations_citation (message_id, id, n, kind, document_id, chunk_id, document, page,
                heading, url, text, start, "end", cited)
            SELECT %s, c.* FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::uuid[], %s::uuid[], %s::text[],
                %s::int[], %s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::bool[]) AS c
            """,
            (answer, *(list(column) for column in zip(*columns, strict=True))),
        )
        await note_retrieved(connection, [source.chunk_id for source in sources if source.chunk_id])


async def tell(connection: Connection, word: str, turn_id: UUID) -> None:
    """Tell all processes something about a turn: "stop", "watch" or "rows"."""
    await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"{word} {turn_id}"))


async def is_active(connection: Connection, turn_id: UUID) -> bool:
    """Whether the turn has not ended."""
    cursor = await connection.execute(
        "SELECT 1 FROM conversations_turn WHERE id = %s AND status IN ('queued', 'running')", (turn_id,)
    )
    return await cursor.fetchone() is not None


def source_of_event(item: dict[str, Any]) -> Source:
    """Rebuild a source from an item of a ``sources`` event; of its text only the snippet is left."""
    document_id, chunk_id = (UUID(item[key]) if item.get(key) else None for key in ("document_id", "chunk_id"))
    return Source(
        n=item["n"], kind=item["kind"], document=item["document"], text=item.get("snippet", ""), page=item.get("page"),
        heading=item.get("heading") or "", url=item.get("url") or "", document_id=document_id, chunk_id=chunk_id,
    )  # fmt: skip
