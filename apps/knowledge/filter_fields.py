"""Form fields of what documents must fit: folders and facts of the bases that somebody may read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet
from django.db.models.functions import JSONObject
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.errors import InvalidInput
from apps.knowledge.models import Folder, KnowledgeBase, MetadataField
from apps.knowledge.services.metadata import typed
from apps.workspaces.principals import Who

ROWS = 3  # facts that a form asks for
OPS = [
    ("eq", gettext_lazy("is")),
    ("ne", gettext_lazy("is not")),
    ("gte", gettext_lazy("is at least")),
    ("lte", gettext_lazy("is at most")),
    ("contains", gettext_lazy("contains")),
]


@dataclass(frozen=True, slots=True)
class Searchable:
    """A base as forms offer it; ``str()`` of a row is an id, since it reaches logs."""

    id: UUID
    name: str
    folders: list[dict[str, str]]  # id and name, those that may be read
    facts: list[MetadataField]  # not as they are stored: key, type and choices alone


def searchable(bases: QuerySet[KnowledgeBase], who: Who) -> list[Searchable]:
    """Return bases with what their documents can be narrowed by, in one query."""
    folders = Folder.objects.visible_to(who).filter(knowledge_base=OuterRef("pk")).order_by("name")
    facts = MetadataField.objects.filter(knowledge_base=OuterRef("pk")).order_by("created_at")
    rows = bases.values_list(
        "pk",
        "name",
        ArraySubquery(folders.values(one=JSONObject(id="pk", name="name"))),
        ArraySubquery(facts.values(one=JSONObject(key="key", type="type", choices="choices"))),
    )
    return [Searchable(pk, name, here, [MetadataField(**fact) for fact in kept]) for pk, name, here, kept in rows]


def folder_choices(bases: Iterable[Searchable]) -> list[tuple[str, str]]:
    """Return the folders to choose from, each behind its base's name."""
    return [(folder["id"], f"{base.name} / {folder['name']}") for base in bases for folder in base.folders]


class FactField(forms.MultiValueField):
    """One fact: which, how it is compared, with what. Its value is what ``Condition`` takes, or None."""

    def __init__(self, **options: Any) -> None:
        self.known: list[MetadataField] = []
        parts = (forms.ChoiceField(required=False), forms.ChoiceField(choices=OPS), forms.CharField(max_length=200))
        super().__init__(
            parts, widget=_FactWidget(), required=False, require_all_fields=False, label=gettext_lazy("Fact"), **options
        )
        for part in parts:
            part.required = False

    def offer(self, known: Iterable[MetadataField]) -> None:
        """Let these be chosen; bases may keep facts of the same name."""
        self.known = list(known)
        names = sorted({one.key for one in self.known})
        choices = [("", _("No matter which")), *((name, name) for name in names)]
        self.fields[0].choices = choices  # type: ignore[attr-defined]
        self.widget.widgets[0].choices = choices

    def compress(self, data_list: Sequence[Any]) -> dict[str, Any] | None:
        """Return the condition, its value of the fact's own type."""
        key, op, value = [*data_list, "", "", ""][:3]
        if not key:
            return None
        if not value:
            raise forms.ValidationError(_("Say what “%(fact)s” is compared with.") % {"fact": key})
        op = op or "eq"
        if op == "contains":
            return {"field": key, "op": op, "value": value}
        problem = ""
        for one in self.known:
            if one.key == key:
                try:
                    return {"field": key, "op": op, "value": typed(one, value)}
                except InvalidInput as error:
                    problem = error.message
        raise forms.ValidationError(problem)


class _FactWidget(forms.MultiWidget):
    def __init__(self) -> None:
        super().__init__(
            [
                forms.Select(attrs={"aria-label": gettext_lazy("Which fact")}),
                forms.Select(choices=OPS, attrs={"aria-label": gettext_lazy("How it is compared")}),
                forms.TextInput(attrs={"aria-label": gettext_lazy("With what"), "dir": "auto"}),
            ]
        )

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0" if id_ else id_

    def decompress(self, value: Any) -> list[Any]:
        if not isinstance(value, dict):
            return ["", "eq", ""]
        shown = value.get("value", "")
        return [value.get("field", ""), value.get("op", "eq"), str(shown).lower() if shown in (True, False) else shown]


NAMES = tuple(f"fact_{number}" for number in range(1, ROWS + 1))


def ask_for_facts(form: forms.Form, bases: Iterable[Searchable], shown: Sequence[dict[str, Any]] = ()) -> None:
    """Give a form the fields that ask for facts of ``bases``, where there are any, beginning with those ``shown``."""
    known = [fact for base in bases for fact in base.facts]
    for name, fact in zip(NAMES if known else (), [*shown, *[None] * ROWS], strict=False):
        field = FactField(initial=fact)
        field.offer(known)
        form.fields[name] = field


def asked_for(form: forms.Form) -> list[forms.BoundField]:
    """Return the fields that ask for facts."""
    return [form[name] for name in NAMES if name in form.fields]


def facts_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions in a form's cleaned data."""
    return [data[name] for name in NAMES if data.get(name)]
