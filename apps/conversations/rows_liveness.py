"""The SQL of turns' life and death: heartbeats, word to other processes, and what was left behind."""

from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import DictRow

from apps.conversations.rows import Connection, Ending, read_events, source_of_event, store_ending, tell

LOCKS = 0x6B73  # class of the advisory locks that say "this process is alive"
JUMP = 10_000  # a recovered turn's last seq is this far above the last stored one


async def beat(connection: Connection, process: str) -> list[DictRow]:
    """Say that a process still works on its turns; return them, and which of them somebody wants stopped.

    ``new``: inserted so short ago that the process may not have heard of it yet.
    """
    cursor = await connection.execute(
        "UPDATE conversations_turn SET heartbeat_at = now()"
        " WHERE owner_process = %s AND status IN ('queued', 'running') "
        " RETURNING id, stop_requested, started_at > now() - interval '5 s' AS new",
        (process,),
    )
    return await cursor.fetchall()


async def claim_turn(connection: Connection, turn_id: UUID) -> bool:
    """Let a queued turn run if none of its conversation does and none waits longer. The caller may race others."""
    cursor = await connection.execute(
        """
        UPDATE conversations_turn t SET status = 'running', heartbeat_at = now()
        WHERE id = %s AND status = 'queued' AND NOT EXISTS (
            SELECT 1 FROM conversations_turn o WHERE o.conversation_id = t.conversation_id
                AND (o.status = 'running' OR (o.status = 'queued' AND o.number < t.number)))
        """,
        (turn_id,),
    )
    return bool(cursor.rowcount)


async def hold_life(connection: Connection, process: str) -> None:
    """Take the lock that ends with this connection, and so with this process.

    A connection that was lost may hold it a little longer; then heartbeats have to do.
    """
    await connection.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", (LOCKS, process))


async def find_abandoned(connection: Connection) -> list[UUID]:
    """Return running turns whose process is gone.

    It is gone after ten seconds without a heartbeat, or at once (three seconds, more than one beat)
    where its lock is free, unless the server has just started and locks were lost by that.
    """
    cursor = await connection.execute(
        """
        SELECT id FROM conversations_turn t WHERE status IN ('queued', 'running') AND (
            heartbeat_at IS NULL OR heartbeat_at < now() - interval '10 s'
            OR (
                heartbeat_at < now() - interval '3 s'
                AND pg_postmaster_start_time() < now() - interval '15 s'
                AND NOT EXISTS (
                    SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                        AND l.classid = %s::oid
                        AND l.objid = (hashtext(t.owner_process)::bigint & 4294967295)::oid
                )
            )
        )
        """,
        (LOCKS,),
    )
    return [row["id"] for row in await cursor.fetchall()]


async def interrupt(connection: Connection, turn_id: UUID, *, error: dict[str, Any]) -> bool:
    """End a turn whose process is gone; False if it has ended.

    The partial text is saved. The last event's seq jumps: a watcher may have seen events that were
    never stored, and asks for what comes after those.
    """
    async with connection.transaction():
        cursor = await connection.execute(
            "SELECT model, usage FROM conversations_turn WHERE id = %s AND status IN ('queued', 'running') FOR UPDATE",
            (turn_id,),
        )
        turn = await cursor.fetchone()
        if turn is None:
            return False
        events = await read_events(connection, turn_id, after=0, limit=1_000_000)
        text = "".join(orjson.loads(event["data"])["text"] for event in events if event["type"] == "token")
        last, at_ms = (events[-1]["seq"], events[-1]["at_ms"]) if events else (0, 0)
        ending = Ending(
            turn_id=turn_id,
            status="interrupted",
            text=text,
            seq=last + JUMP,
            at_ms=at_ms,
            event={"status": "interrupted", "error": error, "last_seq": last},
            sources=[source_of_event(one) for event in events if event["type"] == "sources" for one in _items(event)],
            model=turn["model"],
            usage=turn["usage"],
            error=error,
        )
        await store_ending(connection, ending)
    return True


def _items(event: DictRow) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = orjson.loads(event["data"])["sources"]
    return items


async def ask_to_stop(connection: Connection, turn_id: UUID) -> None:
    """Leave word for the process that runs the turn; its heartbeat finds the flag if the notice is lost."""
    await connection.execute(
        "UPDATE conversations_turn SET stop_requested = true WHERE id = %s AND status IN ('queued', 'running')",
        (turn_id,),
    )
    await tell(connection, "stop", turn_id)
