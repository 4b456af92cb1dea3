"""Doors compiled once: SQL is kept for each shape of Principal, only the ids change.

The ORM needs one to ten milliseconds to build and compile what PostgreSQL answers in a tenth. Only
the text is kept: the rights are read by the statement itself. ``DoorQuery`` keeps a whole query,
``compiled`` the condition of a door, to be used in any query.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db.models import BooleanField, Expression, F, Model, QuerySet
from django.db.models.sql.compiler import SQLCompiler

from apps.workspaces.principals import IDS, Principal, Who

M = TypeVar("M", bound=Model)
S = TypeVar("S", bound=QuerySet[Any, Any])
KEPT = 500  # shapes: scopes of keys make them many
ROW = "{row}."
ALIAS = re.compile(r'(?<!["\w])[A-Z]{1,2}\d+(?!["\w(])')  # what Django calls tables of subqueries
_numbers = count()

Statement = tuple[str, tuple[Any, ...]]


class DoorQuery(Generic[M]):
    """A query behind a door. ``build(who, **ids)`` makes the queryset; nothing but who and ids may vary in it.

    It is called once a shape, with ids that stand for any others, so it must not look at them, nor at
    the clock.
    """

    def __init__(self, build: Callable[..., QuerySet[M, Any]]) -> None:
        self._build = build
        names = list(inspect.signature(build).parameters)[1:]
        self._stand_ins = {name: uuid4() for name in names}
        self._compiled: dict[Principal, _Compiled[M]] = {}

    def statement(self, who: Who, **ids: UUID) -> Statement:
        """Return SQL and its parameters, to run on any connection."""
        principal = Principal.of(who)
        stand_in, _, sql, parameters = self._known(principal)
        given: dict[Any, Any] = {place: ids[name] for name, place in self._stand_ins.items()}
        given |= {getattr(stand_in, name): getattr(principal, name) for name in IDS if getattr(stand_in, name)}
        return sql, tuple(_given(given, value) for value in parameters)

    def rows(self, who: Who, **ids: UUID) -> list[M]:
        """Run it; return its rows as objects of the model."""
        sql, parameters = self.statement(who, **ids)
        model = self._known(Principal.of(who)).model
        return list(model._default_manager.raw(sql, parameters))

    def _known(self, principal: Principal) -> "_Compiled[M]":
        shape = principal.shape()
        if shape not in self._compiled:
            if len(self._compiled) >= KEPT:
                self._compiled.clear()
            stand_in = principal.stand_in()
            queryset = self._build(stand_in, **self._stand_ins)
            try:
                sql, parameters = queryset.query.sql_with_params()
            except EmptyResultSet:  # shut for everybody of this shape, such as the signed-out
                sql, parameters = f"SELECT * FROM {queryset.model._meta.db_table} WHERE FALSE", ()  # noqa: S608
            self._compiled[shape] = _Compiled(stand_in, queryset.model, sql, parameters)
        return self._compiled[shape]


class _Compiled(NamedTuple, Generic[M]):
    stand_in: Principal
    model: type[M]
    sql: str
    parameters: tuple[Any, ...]


def compiled(build: Callable[[S, Who], S]) -> Callable[[S, Who], S]:
    """Keep the condition of a door (``visible_to``, ``editable_by``) compiled, for each shape of Principal.

    A page goes through a dozen doors, and the ORM would build hundreds of parts anew for each of them.
    ``build`` only filters, by the principal and by columns of the row's own table, and must not look
    at ids or at the clock.
    """
    known: dict[tuple[type[Model], Principal, bool], _Condition] = {}

    @wraps(build)
    def door(rows: S, who: Who) -> S:
        principal = Principal.of(who)
        shape = rows.model, principal.shape(), settings.LITE
        if shape not in known:
            if len(known) >= KEPT:
                known.clear()
            known[shape] = _condition(rows.model, build, principal.stand_in())
        found = known[shape]
        return rows.filter(_Admitted(found, principal)) if found.sql else rows.none()

    return door


class _Condition(NamedTuple):
    """A compiled condition: its SQL has ``ROW`` for the row's table, none where nothing is ever admitted."""

    sql: str
    parameters: tuple[Any, ...]
    stand_in: Principal


def _condition(model: type[Model], build: Callable[[S, Who], S], stand_in: Principal) -> _Condition:
    queryset = type(model._default_manager.all())(model=model)
    query = build(queryset, stand_in).query  # type: ignore[arg-type]
    try:
        sql, parameters = query.get_compiler("default").compile(query.where)
    except EmptyResultSet:
        return _Condition("", (), stand_in)
    if {alias for alias, uses in query.alias_refcount.items() if uses} != {model._meta.db_table}:
        raise TypeError(f"{build.__qualname__} joins other tables; a subquery can be compiled")
    own = f"d{next(_numbers)}_"  # a condition may stand within another one: no alias of both is the same
    sql = ALIAS.sub(lambda alias: own + alias.group().lower(), sql)
    sql = sql.replace(f'"{model._meta.db_table}".', ROW)
    return _Condition(f"({sql})", tuple(parameters), stand_in)


class _Admitted(Expression):
    """A compiled condition on the rows of a query, whatever name their table has in it."""

    output_field = BooleanField()

    def __init__(self, condition: _Condition, principal: Principal) -> None:
        super().__init__()
        self.condition, self.principal = condition, principal
        self.row: Any = F("pk")

    def get_source_expressions(self) -> list[Any]:
        return [self.row]

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        [self.row] = exprs

    def as_sql(self, compiler: SQLCompiler, connection: object) -> tuple[str, tuple[Any, ...]]:
        sql, parameters, stand_in = self.condition
        given = {getattr(stand_in, name): getattr(self.principal, name) for name in IDS if getattr(stand_in, name)}
        table = compiler.quote_name_unless_alias(self.row.alias)
        return sql.replace(ROW, f"{table}."), tuple(_given(given, value) for value in parameters)


def _given(given: dict[Any, Any], value: Any) -> Any:
    return given.get(value, value) if isinstance(value, UUID) else value
