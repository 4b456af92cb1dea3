"""The database from async code: threads for the ORM, a connection pool for hot SQL.

``sync_to_async`` puts all ORM calls of a process into one thread; ``in_db`` runs a whole unit of
work in one of eight. Hot paths (search, event rows, socket sign-in) use ``pool()`` directly.
"""

import asyncio
import contextvars
import re
import select
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import cache, lru_cache, partial
from typing import Any, ParamSpec, Self, TypeVar
from uuid import UUID

from asgiref.sync import SyncToAsync, async_to_sync
from django.conf import settings
from django.db import close_old_connections, connections, models
from django.db.models import Model
from psycopg import AsyncConnection, AsyncRawCursor, RawCursor
from psycopg.abc import Params
from psycopg.rows import DictRow, Row, dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool

P = ParamSpec("P")
T = TypeVar("T")
Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

THREADS = 8  # the web process's Django pool holds as many connections and some for requests
PLACEHOLDER = re.compile(r"%(?:%|s|\((\w+)\)s)")
KEPT = "_cursor_kept"  # where Django's connection holds it
AS_THEY_ARE: dict[type, type] = {  # kinds of fields, and the type of values that the driver takes from them unchanged
    models.CharField: str,
    models.TextField: str,
    models.UUIDField: UUID,
    models.BooleanField: bool,
    models.FloatField: float,
    models.IntegerField: int,
    models.PositiveIntegerField: int,
    models.PositiveSmallIntegerField: int,
    models.PositiveBigIntegerField: int,
}
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
    """Run a statement that the ORM cannot write, on Django's connection; return its rows, none where it has none.

    Values go beside the statement, so one of which it does not tell the type needs a cast. Django's own cursor quotes
    each into it, which with the cursor itself is half of what a statement costs this process; it is used where
    somebody looks at what is run.
    """
    with _cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall()) if cursor.description else []


def copy_in(statement: str, blocks: Iterable[bytes]) -> None:
    """Send rows that are laid out for a COPY, on Django's connection, in the caller's transaction."""
    with _cursor() as cursor, cursor.copy(statement) as copy:
        for block in blocks:
            copy.write(block)


@contextmanager
def _cursor() -> Iterator[Any]:
    """Lend the cursor that Django's connection keeps, under Django's guards; rows are read before it is lent again."""
    connection = connections["default"]
    if connection.queries_logged or connection.execute_wrappers:
        with connection.cursor() as watched, connection.wrap_database_errors:
            yield watched
        return
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    connection.validate_thread_sharing()
    connection.validate_no_broken_transaction()
    kept = vars(connection).get(KEPT)
    if kept is None or kept.connection is not connection.connection:
        kept = vars(connection)[KEPT] = BesideCursor(connection.connection)
    with connection.wrap_database_errors:
        yield kept


def prepared_values(model: type[Model], fields: Mapping[str, object]) -> tuple[list[str], list[Any]]:
    """Return the quoted columns and the values as the driver takes them, for a statement that is written by hand.

    The ORM takes longer to put a statement together than the server to run it: what every document or
    turn goes through several times is written out.
    """
    connection, known = connections["default"], _fields_of(model)
    columns, values = [], []
    for name, value in fields.items():
        field, column, same = known[name]
        columns.append(column)
        values.append(value if type(value) is same else field.get_db_prep_save(value, connection))
    return columns, values


@cache
def _fields_of(model: type[Model]) -> dict[str, tuple[Any, str, type | None]]:
    """Return a model's fields by name: each with its quoted column, and the type of values that it leaves alone."""
    quote = connections["default"].ops.quote_name
    fields = model._meta.concrete_fields
    kinds = [type(field.target_field if type(field) is models.ForeignKey else field) for field in fields]
    return {
        field.name: (field, quote(str(field.column)), AS_THEY_ARE.get(kind))
        for field, kind in zip(fields, kinds, strict=True)
    }


def insert(row: Model) -> None:
    """Write a new row as ``save(force_insert=True)`` does, without the signals that nobody here listens to."""
    values = {field.name: field.pre_save(row, add=True) for field in row._meta.concrete_fields}
    columns, prepared = prepared_values(type(row), values)
    run(_insertion(row._meta.db_table, tuple(columns)), prepared)
    row._state.adding, row._state.db = False, "default"


@lru_cache(maxsize=100)
def _insertion(table: str, columns: tuple[str, ...]) -> str:
    return f'INSERT INTO "{table}" ({", ".join(columns)}) VALUES ({", ".join(["%s"] * len(columns))})'  # noqa: S608


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


class BesideCursor(RawCursor[Row]):
    """A cursor for ``%s`` and ``%(name)s`` that sends values beside the statement."""

    def execute(self, query: Any, params: Params | None = None, **more: Any) -> Self:
        """Run a query."""
        return super().execute(*_beside(query, params), **more)


class KeptCursor(AsyncRawCursor[Row]):
    """A cursor that keeps how the placeholders of a query are numbered, however long it is.

    psycopg keeps it up to 4,096 characters only. A statement with a door in it is twice as long, and reading it
    anew took 0.6 ms of the 1 ms that a door cost a statement.
    """

    async def execute(self, query: Any, params: Params | None = None, **more: Any) -> Self:
        """Run a query with ``%s`` or ``%(name)s`` in it, as any other cursor does."""
        return await super().execute(*_beside(query, params), **more)


def _beside(query: Any, params: Params | None) -> tuple[Any, Params | None]:
    if params is None or not isinstance(query, str):
        return query, params
    query, names = _numbered(query)
    return query, [params[name] for name in names] if isinstance(params, Mapping) else params


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
