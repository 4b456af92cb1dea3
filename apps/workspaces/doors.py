"""Doors compiled once: a queryset's SQL is kept for each shape of Principal, only the ids change.

The ORM needs one or two milliseconds to build and compile what PostgreSQL answers in a tenth. Only
the text is kept: the rights are read by the statement itself.
"""

import inspect
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID, uuid4

from django.core.exceptions import EmptyResultSet
from django.db.models import Model, QuerySet

from apps.workspaces.principals import IDS, Principal, Who

M = TypeVar("M", bound=Model)
KEPT = 500  # shapes: scopes of keys make them many

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
        return sql, tuple(given.get(value, value) if isinstance(value, UUID) else value for value in parameters)

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
