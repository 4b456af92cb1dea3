"""Where the graph's state waits between turns: LangGraph's tables in the schema ``langgraph``.

The checkpoint is a cache; rows of messages are the truth. So a checkpoint that cannot be read is
rebuilt from rows, and one that cannot be written costs the turn nothing but a warning.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from apps.common.database import check_alive, conninfo

logger = logging.getLogger(__name__)

T = TypeVar("T")
Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

SCHEMA = "langgraph"
SETUP_LOCK = 7_240_117_002  # one process at a time makes the tables
CONNECTIONS = 6
PATIENCE_S = 2.0  # for a connection
TRIES = 4
FEW = 40  # messages, that are written faster than handed to a thread
LOST = (psycopg.OperationalError, psycopg.InterfaceError)

INLINE = (str, int, float, bool, type(None))  # values that stand in the checkpoint's own row, as LangGraph reads them

# What LangGraph's own saver writes in a dozen statements and prunes in thirty: the blobs that are new, the
# checkpoint, and away with what the conversation's earlier ones alone need.
PUT = """
WITH blobs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(thread)s, %(space)s, b.* FROM unnest(%(channels)s::text[], %(versions)s::text[], %(types)s::text[],
        %(blobs)s::bytea[]) AS b
    ON CONFLICT DO NOTHING
), older AS (
    DELETE FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = %(space)s
        AND checkpoint_id < %(checkpoint)s
), writes AS (
    DELETE FROM checkpoint_writes WHERE thread_id = %(thread)s AND checkpoint_ns = %(space)s
        AND checkpoint_id < %(checkpoint)s
), unused AS (
    DELETE FROM checkpoint_blobs WHERE thread_id = %(thread)s AND checkpoint_ns = %(space)s
        AND version IS DISTINCT FROM %(content)s::jsonb -> 'channel_versions' ->> channel
)
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
VALUES (%(thread)s, %(space)s, %(checkpoint)s, NULL, %(content)s, %(metadata)s)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
DO UPDATE SET checkpoint = excluded.checkpoint, metadata = excluded.metadata
"""

_pools: dict[asyncio.AbstractEventLoop, Pool] = {}
_opening: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}


async def pool() -> Pool:
    """Return this event loop's pool; the first call opens it and makes the tables if there are none."""
    loop = asyncio.get_running_loop()
    if loop in _pools:
        return _pools[loop]
    for other in [known for known in (*_pools, *_opening) if known.is_closed()]:
        _pools.pop(other, None)
        _opening.pop(other, None)
    async with _opening.setdefault(loop, asyncio.Lock()):
        if loop not in _pools:
            await _make_tables()
            opened: Pool = AsyncConnectionPool(
                _conninfo(),
                min_size=1,
                max_size=CONNECTIONS,
                timeout=PATIENCE_S,
                reconnect_timeout=1.5,  # as of the other pools: who comes next tries anew
                open=False,
                check=check_alive,
                kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
            )
            await opened.open()
            _pools[loop] = opened
    return _pools[loop]


async def close_pool() -> None:
    """Close this event loop's pool; a later ``pool()`` opens a new one."""
    found = _pools.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.close()


def _conninfo() -> str:
    # A checkpoint is a cache: the last moments before a server crash may be lost.
    options = f"-c search_path={SCHEMA} -c synchronous_commit=off"
    return make_conninfo(conninfo(), options=options, application_name="knowsphere checkpoints", connect_timeout=3)


async def _make_tables() -> None:
    """Create what is missing. Outside a transaction, because LangGraph builds indexes concurrently."""
    async with await AsyncConnection.connect(_conninfo(), autocommit=True, row_factory=dict_row) as connection:
        if await _are_current(connection):
            return
        await connection.execute("SELECT pg_advisory_lock(%s)", (SETUP_LOCK,))
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await AsyncPostgresSaver(connection).setup()
        # Compressing was most of the cost of a write: 14 ms with it, 6 ms without (300 KB).
        await connection.execute("ALTER TABLE checkpoint_blobs ALTER COLUMN blob SET STORAGE EXTERNAL")


async def _are_current(connection: AsyncConnection[DictRow]) -> bool:
    """Return whether all is there, without taking a lock that a running turn could feel."""
    cursor = await connection.execute("SELECT to_regclass('checkpoint_migrations') IS NOT NULL AS there")
    row = await cursor.fetchone()
    if not row or not row["there"]:
        return False
    cursor = await connection.execute(
        "SELECT (SELECT max(v) FROM checkpoint_migrations) AS version,"
        " (SELECT attstorage FROM pg_attribute WHERE attrelid = to_regclass('checkpoint_blobs') AND attname = 'blob')"
        " AS storage"
    )
    row = await cursor.fetchone()
    return (
        row is not None and row["version"] == len(AsyncPostgresSaver.MIGRATIONS) - 1 and row["storage"] in ("e", b"e")
    )


class TurnSaver(AsyncPostgresSaver):
    """The checkpointer of one turn; one object each, because a saver does one thing at a time.

    ``load`` reads the state once, and the graph's own reading takes it from there. Calls are tried
    again when a connection drops (they are upserts). When the database stays away the turn goes on
    from memory and ``lost`` says so.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.lost = False
        self._loaded: CheckpointTuple | None = None
        self._fresh = False

    async def load(self, config: RunnableConfig) -> dict[str, Any] | None:
        """Return the state's values as the last turn left them; None where there are none."""
        self._loaded = await self.aget_tuple(config)
        self._fresh = True
        return dict(self._loaded.checkpoint["channel_values"]) if self._loaded else None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        if self._fresh:
            self._fresh = False
            return self._loaded
        if self.lost:
            return None
        return await self._kept(lambda: super(TurnSaver, self).aget_tuple(config), None)

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """Do what the parent does, which goes through a thread for writes that a finished turn does not leave."""
        if value["pending_writes"]:
            return await super()._load_checkpoint_tuple(value)
        place = {name: value[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}
        checkpoint: Checkpoint = value["checkpoint"]
        small = checkpoint.get("channel_values") or {}
        checkpoint["channel_values"] = {**small, **self._load_blobs(value["channel_values"])}
        return CheckpointTuple({"configurable": place}, checkpoint, value["metadata"], None, [])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint in place of the conversation's earlier ones, in one statement."""
        known = config["configurable"]
        thread, space, number = known["thread_id"], known.get("checkpoint_ns", ""), checkpoint["id"]
        values = checkpoint["channel_values"]
        large = {name: value for name, value in values.items() if not isinstance(value, INLINE)}
        small = {**checkpoint, "channel_values": {name: values[name] for name in values.keys() - large.keys()}}
        versions = {name: version for name, version in new_versions.items() if name in large}
        dump = partial(self._dump_blobs, thread, space, large, versions)
        blobs = dump() if len(large.get("messages") or ()) < FEW else await asyncio.to_thread(dump)
        parameters = {
            "thread": thread,
            "space": space,
            "checkpoint": number,
            "content": Jsonb(small),
            "metadata": Jsonb(get_serializable_checkpoint_metadata(config, metadata)),
            "channels": [blob[2] for blob in blobs],
            "versions": [blob[3] for blob in blobs],
            "types": [blob[4] for blob in blobs],
            "blobs": [blob[5] for blob in blobs],
        }

        async def put() -> None:
            async with self._cursor() as cursor:
                await cursor.execute(PUT, parameters)

        await self._kept(put, None)
        return {"configurable": {"thread_id": thread, "checkpoint_ns": space, "checkpoint_id": number}}

    async def aput_writes(self, config: RunnableConfig, writes: Any, task_id: str, task_path: str = "") -> None:
        await self._kept(lambda: super(TurnSaver, self).aput_writes(config, writes, task_id, task_path), None)

    async def _kept(self, call: Callable[[], Awaitable[T]], otherwise: T) -> T:
        for tried in range(1, TRIES + 1):
            try:
                return await call()
            except LOST as error:
                if tried == TRIES or self.lost:
                    self.lost = True
                    logger.warning("checkpoints cannot be reached: %s", type(error).__name__)
                    return otherwise
                await asyncio.sleep(0.1 * 2 ** (tried - 1) * random.uniform(0.5, 1))  # noqa: S311 (jitter)
        raise AssertionError("unreachable")


async def saver() -> TurnSaver | None:
    """Return a checkpointer for one turn, or None while the database cannot be reached."""
    try:
        return TurnSaver(await pool())
    except psycopg.Error:
        logger.exception("checkpoints cannot be reached")
        return None


async def forget(thread: str) -> None:
    """Erase a conversation's state, with the conversation."""
    await TurnSaver(await pool()).adelete_thread(thread)
