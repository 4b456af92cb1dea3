"""Which documents a search looks at: by tag, folder, date, and the facts that a base keeps of its documents.

A filter narrows the reader's door and becomes part of its SQL, so every leg counts and ranks only what fits.
"""

from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db import models
from django.db.models import JSONField, Q, Value
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as SchemaError

from apps.common.errors import InvalidInput
from apps.common.text import storable
from apps.knowledge.querysets import DocumentQuerySet

LAST_DAY = date(9999, 12, 30)  # the day after it is a date still
MOST = 50  # values in one list of a filter
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Condition(BaseModel):
    """One fact about a document: ``field`` as the base names it, compared with ``value``.

    Dates are written 2026-05-31. "contains" is for texts, in any case.
    """

    model_config = STRICT

    field: Text
    op: Literal["eq", "ne", "gte", "lte", "contains"] = "eq"
    value: bool | int | float | Text


class Filters(BaseModel):
    """What a document must fit; everything given must hold. Nothing given fits every document."""

    model_config = STRICT

    tags: tuple[Text, ...] = Field((), max_length=MOST, description="The document has all of these tags.")
    folders: tuple[UUID, ...] = Field((), max_length=MOST, description="It lies in one of these folders or below.")
    documents: tuple[UUID, ...] = Field((), max_length=MOST, description="It is one of these.")
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = Field(
        "", description="Its name contains this."
    )
    added_from: date | None = Field(None, le=LAST_DAY, description="It was added on this day or later.")
    added_to: date | None = Field(None, le=LAST_DAY, description="It was added on this day or earlier.")
    metadata: tuple[Condition, ...] = Field((), max_length=MOST, description="Facts that the base keeps of it.")

    def __bool__(self) -> bool:
        return bool(self.model_dump(exclude_defaults=True))

    def apply(self, documents: DocumentQuerySet) -> DocumentQuerySet:
        """Keep the documents that fit. Days are those of the active time zone."""
        if self.tags:
            documents = documents.tagged(self.tags)
        if self.folders:
            documents = documents.in_folders(self.folders)
        if self.documents:
            documents = documents.filter(pk__in=self.documents)
        documents = documents.named(self.name)
        if self.added_from:
            documents = documents.filter(created_at__gte=_midnight(self.added_from))
        if self.added_to:
            documents = documents.filter(created_at__lt=_midnight(self.added_to + timedelta(days=1)))
        for condition in self.metadata:
            documents = documents.filter(_where(condition))
        return documents

    @classmethod
    def of(cls, values: Any) -> "Filters":
        """Return a checked filter.

        Raises:
            InvalidInput: a field that does not exist, or a value that it cannot have.
        """
        try:
            return cls.model_validate(values)
        except SchemaError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "filters"
            raise InvalidInput(field=where, reason=_(problem["msg"])) from None


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _where(condition: Condition) -> Any:
    """Compare as JSON does, where numbers are numbers and days written as ISO 8601 are in order.

    What is not of the value's own type does not fit: no number is larger than a text.
    """
    key, value = storable(condition.field), condition.value
    if isinstance(value, str):
        value = storable(value)
    if condition.op == "eq":
        return Q(attributes__contains={key: value})
    if condition.op == "ne":
        return ~Q(attributes__contains={key: value})
    found = _Fact("attributes", Value(key, models.TextField()))
    if condition.op == "contains":
        text = _FactText("attributes", Value(key, models.TextField()))
        is_text = Q(models.lookups.Exact(_TypeOf(found), Value("string")))
        return is_text & Q(models.lookups.IContains(text, str(value)))
    lookup = GreaterThanOrEqual if condition.op == "gte" else LessThanOrEqual
    same = Q(models.lookups.Exact(_TypeOf(found), Value("string" if isinstance(value, str) else "number")))
    return same & Q(lookup(found, Value(value, JSONField())))


class _Fact(models.Func):
    """A fact by its name, also where that is all digits, which KeyTransform takes for a place in a list."""

    function = "jsonb_extract_path"
    output_field = JSONField()


class _FactText(models.Func):
    function = "jsonb_extract_path_text"
    output_field = models.TextField()


class _TypeOf(models.Func):
    function = "jsonb_typeof"
    output_field = models.TextField()
