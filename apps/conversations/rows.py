"""The SQL of turns: begin, events, ending, recovery, and the sign-in of sockets.

Hot paths, so by hand on the async pool: one round trip to begin a turn, one insert for the events
of all turns, one transaction to end one. Everything may be repeated after a lost connection.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import orjson
from django.db.models import QuerySet
from psycopg import AsyncConnection
from psycopg.rows import DictRow as DictRow

from apps.agents.turn import Source
from apps.common.database import prepared
from apps.common.text import storable
from apps.conversations.log import Row, encode
from apps.conversations.markdown import NUMBER
from apps.conversations.models import Turn
from apps.knowledge.retrieval.usage import note_retrieved
from apps.workspaces import audit
from apps.workspaces.doors import DoorQuery
from apps.workspaces.principals import Principal, Who
from apps.workspaces.services import quotas

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


class Standing(NamedTuple):
    """What somebody's sign-in rested on when it was last looked at: as long as it is the same, so is who they are."""

    session_key: str
    session_data: str
    user_id: UUID
    password: str

    def behind(self, door: tuple[str, tuple[Any, ...]]) -> tuple[str, tuple[Any, ...]]:
        """Return a door that is shut, too, as soon as any of it has changed."""
        sql, parameters = door
        return f"SELECT d.* FROM ({sql}) d WHERE {STANDS}", (*parameters, *self)  # noqa: S608 (the door's own SQL)


STANDS = """
EXISTS (SELECT 1 FROM django_session WHERE session_key = %s AND session_data = %s AND expire_date > now())
AND EXISTS (SELECT 1 FROM workspaces_user WHERE id = %s AND password = %s AND is_active)
"""


def compiled(queryset: QuerySet[Any, Any]) -> tuple[str, tuple[Any, ...]]:
    """Return a queryset's SQL and parameters, to run on the async pool."""
    return queryset.query.sql_with_params()


def connected() -> AbstractAsyncContextManager[Connection]:
    """Lend a connection that keeps its statements prepared; a person waits for one at most ``PATIENCE_S``."""
    return prepared(timeout=PATIENCE_S)


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
    parent, or ``WAITING`` turns of it wait, or a quota has no room. ``counted`` says whose counters have
    taken the question all the same (null: the workspace's): they are to be given back. ``follows`` is the
    parent's number, ``attached`` says whether anything was ever attached.

    One statement is one transaction and one round trip. It does not wait for the disk: should the
    database server die in the next moment, the process that runs the turn puts the row back
    (``put_back``). Raises psycopg's UniqueViolation, which counts nothing: two began at once, or the
    client id has been here.
    """
    sql, parameters = door
    person = asker.user_id
    take, taken = quotas.take_statement({"turns": 1}, user_id=person, place="SELECT workspace_id FROM door")
    log, logged = audit.asked_statement(Turn, turn_id, who=asker, place="SELECT door.workspace_id FROM new, door")
    cursor = await connection.execute(
        f"""
        WITH door AS ({sql}),
        counted AS ({take}),
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
                AND (SELECT count(*) FROM counted) = %s
            RETURNING conversation_id, number, parent_id, status
        ),
        message AS (
            INSERT INTO conversations_message (id, conversation_id, turn_id, role, text, created_at)
            SELECT %s, conversation_id, %s, 'user', %s, now() FROM new
        ),
        asked AS ({log}),
        conversation AS (
            UPDATE conversations_conversation SET changed_at = now(), archived_at = NULL,
                title = coalesce(nullif(title, ''), %s)
            WHERE id = (SELECT conversation_id FROM new)
        )
        SELECT door.*, new.number, new.parent_id, new.status, active.waiting,
            (SELECT parent.number FROM parent) AS follows,
            (SELECT array_agg(user_id) FROM counted) AS counted,
            EXISTS (SELECT 1 FROM conversations_attachment a WHERE a.conversation_id = door.id) AS attached,
            set_config('synchronous_commit', 'off', true)
        FROM door CROSS JOIN active LEFT JOIN new ON true
        """,  # noqa: S608 (the door's own SQL)
        (
            *parameters, *taken, first, parent, turn_id, client_id, question, encode(options).decode(), process, parent,
            2 if person else 1, message_id(turn_id, "user"), turn_id, question, *logged, title,
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
    """Store answer, citations, status and last event, replacing what an earlier attempt wrote: one statement.

    The process that ran the turn has the last word: where another took it for dead meanwhile, the
    verdict and its event are replaced. Raises TurnLost where there is no such turn.
    """
    turn, answer = ending.turn_id, message_id(ending.turn_id, "assistant")
    cited = {int(n) for n in NUMBER.findall(ending.text)}
    sources = [
        (
            uuid5(answer, str(s.n)), s.n, s.kind[:10], s.document_id, s.chunk_id, storable(s.document)[:255], s.page,
            storable(s.heading), storable(s.url), storable(s.text), s.start, s.end, s.n in cited,
        )
        for s in {source.n: source for source in ending.sources}.values()
    ]  # fmt: skip
    columns = [list(column) for column in zip(*sources, strict=True)] or [[] for _ in range(13)]
    cursor = await connection.execute(
        """
        WITH turn AS (
            UPDATE conversations_turn SET status = %s, last_seq = %s, model = %s, usage = %s::jsonb, error = %s::jsonb,
                finished_at = now() WHERE id = %s RETURNING id, conversation_id
        ),
        answer AS (
            INSERT INTO conversations_message (id, conversation_id, turn_id, role, text, created_at)
            SELECT %s, conversation_id, id, 'assistant', %s, now() FROM turn
            ON CONFLICT (id) DO UPDATE SET text = excluded.text
        ),
        dropped AS (
            DELETE FROM conversations_citation WHERE message_id = %s AND id <> ALL(%s::uuid[])
        ),
        citations AS (
            INSERT INTO conversations_citation (message_id, id, n, kind, document_id, chunk_id, document, page,
                heading, url, text, start, "end", cited)
            SELECT %s, c.* FROM turn, unnest(%s::uuid[], %s::int[], %s::text[], %s::uuid[], %s::uuid[], %s::text[],
                %s::int[], %s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::bool[]) AS c
            ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, document_id = excluded.document_id,
                chunk_id = excluded.chunk_id, document = excluded.document, page = excluded.page,
                heading = excluded.heading, url = excluded.url, text = excluded.text, start = excluded.start,
                "end" = excluded."end", cited = excluded.cited
        ),
        later AS (
            DELETE FROM conversations_turnevent WHERE turn_id = %s AND seq > %s
        ),
        last AS (
            INSERT INTO conversations_turnevent (turn_id, seq, type, at_ms, data)
            SELECT id, %s, 'turn.finished', %s, %s::jsonb FROM turn
            ON CONFLICT (turn_id, seq) DO UPDATE SET type = excluded.type, at_ms = excluded.at_ms, data = excluded.data
        )
        SELECT pg_notify(%s, %s) FROM turn
        """,
        (
            ending.status, ending.seq, ending.model[:200], encode(ending.usage).decode(),
            encode(ending.error).decode() if ending.error else None, turn, answer, ending.text,
            answer, columns[0], answer, *columns, turn, ending.seq,
            ending.seq, ending.at_ms, encode({**ending.event, "message": str(answer)}).decode(),
            CHANNEL, f"rows {turn}",
        ),
    )  # fmt: skip
    if await cursor.fetchone() is None:
        raise TurnLost
    await note_retrieved(connection, [source.chunk_id for source in ending.sources if source.chunk_id])


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
