"""Queries whose shape never varies, compiled once.

The ORM needs a millisecond to build and compile what PostgreSQL answers in a tenth. A query is
written with the ORM all the same, so that doors stay in one place; only its SQL is kept.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar
from uuid import UUID, uuid4

from django.db import connections
from django.db.models import JSONField, Model, QuerySet
from psycopg.rows import DictRow

M = TypeVar("M", bound=Model)


def objects(model: type[M], rows: Iterable[DictRow]) -> list[M]:
    """Make a model's objects of rows of the async pool; columns that they lack are read when asked for.

    JSON is an object there already, which Django's own connections leave to the field.
    """
    connection = connections["default"]
    converters = {
        field.attname: field.from_db_value
        for field in model._meta.concrete_fields
        if hasattr(field, "from_db_value") and not isinstance(field, JSONField)
    }

    def value(name: str, found: object) -> object:
        return converters[name](found, None, connection) if name in converters else found

    return [model.from_db("default", list(row), [value(*item) for item in row.items()]) for row in rows]


class CompiledQuery(Generic[M]):
    """A query over ids. ``build`` makes the queryset from ids, by name; nothing else in it may vary.

    It is called once, with ids that stand for any others, so it must not look at them.
    """

    def __init__(self, build: Callable[..., QuerySet[M, M]]) -> None:
        self._build = build
        self._stand_ins = {uuid4(): name for name in inspect.signature(build).parameters}
        self._compiled: tuple[type[M], str, tuple[object, ...]] | None = None

    def statement(self, **ids: UUID) -> tuple[str, tuple[object, ...]]:
        """Return SQL and its parameters, to run on any connection."""
        _model, sql, parameters = self._known()
        given = (ids[self._stand_ins[p]] if isinstance(p, UUID) and p in self._stand_ins else p for p in parameters)
        return sql, tuple(given)

    def rows(self, **ids: UUID) -> list[M]:
        """Run it; return its rows as objects of the model."""
        return list(self._known()[0]._default_manager.raw(*self.statement(**ids)))

    def _known(self) -> tuple[type[M], str, tuple[object, ...]]:
        if self._compiled is None:
            queryset = self._build(**{name: stand_in for stand_in, name in self._stand_ins.items()})
            self._compiled = (queryset.model, *queryset.query.sql_with_params())
        return self._compiled
