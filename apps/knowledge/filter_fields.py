"""Form fields of what documents must fit: bases and folders by their names, and facts."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.errors import InvalidInput
from apps.knowledge.models import Folder, KnowledgeBase, MetadataField
from apps.knowledge.services.metadata import typed

ROWS = 3  # facts that a form asks for
OPS = [
    ("eq", gettext_lazy("is")),
    ("ne", gettext_lazy("is not")),
    ("gte", gettext_lazy("is at least")),
    ("lte", gettext_lazy("is at most")),
    ("contains", gettext_lazy("contains")),
]


class BasesField(forms.ModelMultipleChoiceField[KnowledgeBase]):
    """Bases by their names: ``str()`` is an id, since it reaches logs."""

    def label_from_instance(self, obj: Any) -> str:
        """Return what people call it."""
        return str(obj.name)


class FoldersField(forms.ModelMultipleChoiceField[Folder]):
    """Folders by base and name. The rows need ``select_related("knowledge_base")``."""

    def label_from_instance(self, obj: Any) -> str:
        """Return what people call it."""
        return f"{obj.knowledge_base.name} / {obj.name}"


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
        self.fields[0].choices = choices
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

    def decompress(self, value: Any) -> list[Any]:
        if not isinstance(value, dict):
            return ["", "eq", ""]
        shown = value.get("value", "")
        return [value.get("field", ""), value.get("op", "eq"), str(shown).lower() if shown in (True, False) else shown]


def fact_fields() -> dict[str, FactField]:
    """Return the fields of a form that asks for facts, by name."""
    return {f"fact_{number}": FactField() for number in range(1, ROWS + 1)}


def facts_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions in a form's cleaned data."""
    return [data[name] for name in fact_fields() if data.get(name)]
