"""The database from async code: threads for the ORM, a connection pool for hot SQL.

``sync_to_async`` puts all ORM calls of a process into one thread; ``in_db`` runs a whole unit of
work in one of eight. Hot paths (search, event rows, socket sign-in) use ``pool()`` directly.
"""

import asyncio
import contextvars
import re
import select
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any, ParamSpec, Self, TypeVar

from asgiref.sync import SyncToAsync, async_to_sync
from django.conf import settings
from django.db import close_old_connections, connections
from django.db.models import Model
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.abc import Params
from psycopg.rows import DictRow, Row, dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool

P = ParamSpec("P")
T = TypeVar("T")
Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

THREADS = 8  # the web process's Django pool holds as many connections and some for requests
PLACEHOLDER = re.compile(r"%(?:%|s|\((\w+)\)s)")
_executor = ThreadPoolExecutor(THREADS, thread_name_prefix="db")
_pools: dict[asyncio.AbstractEventLoop, Pool] = {}
_columns: dict[str, tuple[str, ...]] = {}  # the names of what statements read, of those that are read together


def _call(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()


async def in_db(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run one whole unit of ORM work (with its own transaction) in a database thread.

    Give it a function that does everything at once, not one call a query: the hop costs more than
    most queries. The connection goes back before this returns.
    """
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_executor, lambda: context.run(_call, partial(work, *args, **kwargs)))


def wait_for(work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run async work from a view: on the server's loop, else (a command, a test) on one that takes its pool along."""
    server = getattr(SyncToAsync.threadlocal, "main_event_loop", None)
    if server is not None and server.is_running():
        return async_to_sync(work)(*args, **kwargs)

    async def whole() -> T:
        try:
            return await work(*args, **kwargs)
        finally:
            await close_pool()

    return asyncio.run(whole())


def set_local(name: str, value: str) -> None:
    """Set a configuration parameter of the server up to the end of the transaction."""
    run("SELECT set_config(%s, %s, true)", [name, value])


def run(sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement that the ORM cannot write, on Django's connection; return its rows, none where it has none."""
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall()) if cursor.description else []


def prepared_values(model: type[Model], fields: Mapping[str, object]) -> tuple[list[str], list[Any]]:
    """Return the quoted columns and the values as the driver takes them, for a statement that is written by hand.

    The ORM takes longer to put a statement together than the server to run it: what every document or
    turn goes through several times is written out.
    """
    connection = connections["default"]
    known = {field.name: field for field in model._meta.concrete_fields}
    found = [known[name] for name in fields]
    columns = [connection.ops.quote_name(str(field.column)) for field in found]
    return columns, [
        field.get_db_prep_save(value, connection) for field, value in zip(found, fields.values(), strict=True)
    ]


async def read_together(statements: Sequence[tuple[str, Sequence[Any]]]) -> list[list[DictRow]]:
    """Run statements in one round trip, as one; return the rows of each. Raises psycopg's errors.

    It is kept prepared: of a door's statement planning is the most. No thread takes part: handing work
    to one and its rows back costs more than the statements. The values are as the driver has them, before a
    field's own conversion. A statement runs by itself when it is read for the first time: records have no names.
    """
    async with prepared() as connection:
        if len(statements) > 1 and all(sql in _columns for sql, _ in statements):
            return await _read_as_one(connection, statements)
        found = []
        for sql, parameters in statements:
            cursor = await connection.execute(sql, parameters)
            found.append(await cursor.fetchall())
            _columns[sql] = tuple(column.name for column in cursor.description or ())
        return found


async def _read_as_one(
    connection: AsyncConnection[DictRow], statements: Sequence[tuple[str, Sequence[Any]]]
) -> list[list[DictRow]]:
    """Read each statement's rows as an array of records, which come in binary: so each value keeps its type.

    Ten statements of a turn, with their connection's pipeline: 1.4 ms, .9 of them this process's; so: .54 and .28.
    """
    whole = _joined(tuple(sql for sql, _ in statements))
    parameters = [value for _, values in statements for value in values]
    async with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        await cursor.execute(whole, parameters)
        [arrays] = await cursor.fetchall()
    return [
        [dict(zip(_columns[sql], record, strict=True)) for record in records]
        for (sql, _), records in zip(statements, arrays, strict=True)
    ]


@lru_cache(maxsize=500)
def _joined(statements: tuple[str, ...]) -> str:
    return "SELECT " + ", ".join(f"ARRAY(SELECT t FROM ({sql}) t)" for sql in statements)  # noqa: S608 (doors' own)


def conninfo() -> str:
    """Return the default database's address for psycopg."""
    from psycopg.conninfo import make_conninfo

    database = connections["default"].settings_dict
    parts: dict[str, Any] = {
        "host": database["HOST"],
        "port": database["PORT"],
        "user": database["USER"],
        "password": database["PASSWORD"],
        "dbname": database["NAME"],
    }
    options = {k: v for k, v in database.get("OPTIONS", {}).items() if k not in {"pool", "isolation_level"}}
    given = {k: v for k, v in parts.items() if v not in ("", None)}  # an empty HOST must not hide the options' socket
    return make_conninfo("", **{**options, **given})


@lru_cache(maxsize=500)
def _numbered(query: str) -> tuple[str, tuple[str, ...]]:
    """Return a query with PostgreSQL's own placeholders, and the names of its parameters in their order, "" for %s."""
    names: list[str] = []
    places: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        if found.group() == "%%":
            return "%"
        name = found.group(1) or ""
        if not name or name not in places:
            names.append(name)
            places[name] = len(names)
        return f"${places[name]}"

    return PLACEHOLDER.sub(place, query), tuple(names)


class KeptCursor(AsyncRawCursor[Row]):
    """A cursor that keeps how the placeholders of a query are numbered, however long it is.

    psycopg keeps it up to 4,096 characters only. A statement with a door in it is twice as long, and reading it
    anew took 0.6 ms of the 1 ms that a door cost a statement.
    """

    async def execute(self, query: Any, params: Params | None = None, **more: Any) -> Self:
        """Run a query with ``%s`` or ``%(name)s`` in it, as any other cursor does."""
        if params is not None and isinstance(query, str):
            query, names = _numbered(query)
            params = [params[name] for name in names] if isinstance(params, Mapping) else params
        return await super().execute(query, params, **more)


async def check_alive(connection: AsyncConnection[Any]) -> None:
    """Raise OperationalError if the server behind an idle connection is gone, as after its restart.

    A living one has nothing to say, which costs 2 µs to see; only one that has is asked.
    """
    unasked = select.poll()
    unasked.register(connection.fileno(), select.POLLIN)
    if unasked.poll(0):
        await AsyncConnectionPool.check_connection(connection)


async def pool() -> Pool:
    """Return this event loop's psycopg pool, opening it on first use.

    Connections are in autocommit mode and return dicts; a transaction is ``async with
    connection.transaction()``.
    """
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        for other in [known for known in _pools if known.is_closed()]:
            del _pools[other]
        opened: Pool = AsyncConnectionPool(
            conninfo(),
            min_size=1,
            max_size=getattr(settings, "ASYNC_POOL_SIZE", 10),
            timeout=10,
            # Give up connecting soon, so that the next request tries anew: the pool's own pauses
            # grow to half a minute, which a database that is back again should not wait for.
            reconnect_timeout=1.5,
            open=False,
            check=check_alive,
            kwargs={
                "autocommit": True,
                "prepare_threshold": None,
                "row_factory": dict_row,
                "cursor_factory": KeptCursor,
            },
        )
        _pools[loop] = opened
        await opened.open()
    return _pools[loop]


@asynccontextmanager
async def prepared(*, timeout: float | None = None) -> AsyncGenerator[AsyncConnection[DictRow], None]:
    """Lend a connection of the pool that keeps its statements prepared: for a door's statement planning is the most.

    The pool's other users plan anew each time, since their best plan depends on what is searched.
    """
    async with (await pool()).connection(timeout=timeout) as connection:
        connection.prepare_threshold = 1
        try:
            yield connection
        finally:
            connection.prepare_threshold = None


async def close_pool() -> None:
    """Close this event loop's pool; a later ``pool()`` opens a new one."""
    found = _pools.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.close()
