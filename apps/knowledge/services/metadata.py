"""Facts that people keep of documents: which a base knows, and what they are of each document."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput
from apps.common.text import display_name, legible, storable
from apps.knowledge.errors import NameTaken
from apps.knowledge.models import Document, KnowledgeBase, MetadataField
from apps.knowledge.services.batches import tags_of
from apps.knowledge.storage_moves import forget_fact
from apps.workspaces import audit
from apps.workspaces.models import User

MOST_FIELDS, MOST_CHOICES = 50, 100
LONGEST = 500  # characters of a text
KEY = re.compile(r"[^\W\d_][\w-]*")
TRUE, FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
Type = MetadataField.Type


def add_metadata_field(
    *, knowledge_base: KnowledgeBase, key: str, of_type: str, actor: User, choices: Sequence[str] = ()
) -> MetadataField:
    """Have a base keep another fact of its documents.

    Raises:
        InvalidInput: the name is no word, there is no such type, a list without choices, or too many fields.
        NameTaken: the base keeps one of this name.
    """
    key = storable(key).strip()
    if not KEY.fullmatch(key) or len(key) > 50:
        raise InvalidInput(field="key", reason=_("letters, digits, - and _, a letter first"))
    if of_type not in Type.values:
        raise InvalidInput(field="type", reason=_("this is none"))
    wanted = list(dict.fromkeys(display_name(one, limit=100) for one in choices if one.strip()))[:MOST_CHOICES]
    if (of_type == Type.CHOICE) != bool(wanted):
        raise InvalidInput(field="choices", reason=_("a list has choices, and nothing else has"))
    if knowledge_base.metadata_fields.count() >= MOST_FIELDS:
        raise InvalidInput(field="key", reason=_("at most %(most)s in a base") % {"most": MOST_FIELDS})
    field = MetadataField(knowledge_base=knowledge_base, key=key, type=of_type, choices=wanted)
    try:
        with transaction.atomic():
            field.save(force_insert=True)
            _log(knowledge_base, actor, key)
    except IntegrityError as error:
        raise NameTaken(name=key) from error
    return field


@transaction.atomic
def delete_metadata_field(*, field: MetadataField, actor: User) -> None:
    """Keep a fact no more, and forget what it is of each document."""
    forget_fact(field.knowledge_base_id, field.key)
    _log(field.knowledge_base, actor, field.key)
    field.delete()


def _log(knowledge_base: KnowledgeBase, actor: User, key: str) -> None:
    audit.did("base.changed", knowledge_base, who=actor, fields=["metadata_fields"], fact=key)


@transaction.atomic
def describe_document(
    *,
    document: Document,
    actor: User,
    attributes: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
) -> None:
    """Say what a document's facts are: those named are set, None or an empty text takes one away.

    Search filters by them from now on; nothing is indexed again.

    Raises:
        InvalidInput: the base keeps no such fact, or the value is of another type. Nothing is changed.
    """
    row = Document.objects.select_for_update().get(pk=document.pk)
    fields = {field.key: field for field in MetadataField.objects.filter(knowledge_base=row.knowledge_base_id)}
    facts = dict(row.attributes)
    for key, value in (attributes or {}).items():
        if key not in fields:
            raise InvalidInput(field=key, reason=_("the knowledge base keeps no such fact"))
        found = typed(fields[key], value)
        facts.pop(key, None)
        if found is not None:
            facts[key] = found
    row.attributes = facts
    if tags is not None:
        row.tags = tags_of(tags)
    row.save(update_fields=["attributes", "tags"])
    document.attributes, document.tags = row.attributes, row.tags
    audit.did("document.described", row, who=actor)


def typed(field: MetadataField, value: Any) -> Any:
    """Return a value as it is stored and filtered by; None for none. It may come from a form, as text.

    Raises:
        InvalidInput: it is of another type.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        return _OF_TYPE[Type(field.type)](field, value)
    except (ValueError, TypeError, OverflowError):
        reasons = {
            Type.TEXT: _("must be a text of at most %(most)s characters") % {"most": LONGEST},
            Type.NUMBER: _("must be a number"),
            Type.DATE: _("must be a day, such as 2026-05-31"),
            Type.BOOLEAN: _("must be yes or no"),
            Type.CHOICE: _("must be one of the list"),
        }
        raise InvalidInput(field=field.key, reason=reasons[Type(field.type)]) from None


def _text(field: MetadataField, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    text = legible(value).strip()
    if len(text) > LONGEST:
        raise ValueError
    return text


def _number(field: MetadataField, value: Any) -> int | float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _date(field: MetadataField, value: Any) -> str:
    return date.fromisoformat(str(value).strip()).isoformat()


def _boolean(field: MetadataField, value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in TRUE | FALSE:
        raise ValueError
    return word in TRUE


def _choice(field: MetadataField, value: Any) -> str:
    if value not in field.choices:
        raise ValueError
    return str(value)


_OF_TYPE = {Type.TEXT: _text, Type.NUMBER: _number, Type.DATE: _date, Type.BOOLEAN: _boolean, Type.CHOICE: _choice}
