"""The owner's form."""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.agents.models import Agent
from apps.knowledge.models import KnowledgeBase
from apps.widgets import origins
from apps.widgets.models import Widget
from apps.workspaces.models import User, Workspace

MOST_STARTERS = 4
COLOR = re.compile(r"#[0-9a-f]{6}")
CONTRAST = 3.0  # of white signs on the bubble, WCAG 2.2 (1.4.11)


class _ByName(forms.ModelChoiceField[Any]):
    """Offer rows by their names; ``str`` of a row has none."""

    def label_from_instance(self, obj: Any) -> str:
        """Return what people call it."""
        return str(obj.name)


class _ManyByName(_ByName, forms.ModelMultipleChoiceField[Any]):
    """Several of them."""


class NewWidgetForm(forms.Form):
    """A widget begins with a name."""

    name = forms.CharField(label=_("Name"), max_length=80, help_text=_("Only people here see it."))


class WidgetForm(forms.ModelForm[Widget]):
    """Everything about one widget; lists are lines of text."""

    origins = forms.CharField(
        label=_("Sites"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "https://www.example.com", "spellcheck": "false"}),
        help_text=_("One address a line, as https://www.example.com or https://*.example.com. None: no site."),
    )
    starters = forms.CharField(
        label=_("Suggested questions"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("One a line, at most four."),
    )
    knowledge_bases = _ManyByName(
        label=_("Knowledge it may read"),
        required=False,
        queryset=KnowledgeBase.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Visitors get answers from these and nothing else. You can choose bases that you manage."),
    )
    budget = forms.DecimalField(
        label=_("Tokens a day"),
        required=False,
        min_value=0,
        max_digits=14,
        decimal_places=0,
        help_text=_("Calls of models stop before this is passed. Empty: no budget of its own."),
    )

    class Meta:
        model = Widget
        fields = (
            "name", "enabled", "agent", "title", "greeting", "color", "theme", "position", "language", "sources",
            "per_visitor_hour", "per_address_hour", "per_day",
        )  # fmt: skip
        labels = {
            "name": _("Name"), "enabled": _("Switched on"), "agent": _("Agent"), "title": _("Title"),
            "greeting": _("Greeting"), "color": _("Colour"), "theme": _("Light or dark"), "position": _("Place"),
            "language": _("Language"), "sources": _("What visitors see of sources"),
            "per_visitor_hour": _("Questions an hour, of one visitor"),
            "per_address_hour": _("Questions an hour, from one address"),
            "per_day": _("Questions a day, of all"),
        }  # fmt: skip
        widgets = {"color": forms.TextInput(attrs={"type": "color"}), "greeting": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, *args: Any, actor: User, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.editable_by(actor).filter(workspace=workspace)
        self.fields["agent"] = _ByName(
            label=_("Agent"), queryset=agents, required=False, empty_label=_("None: it does not answer")
        )
        bases = self.fields["knowledge_bases"]
        bases.queryset = (  # type: ignore[attr-defined]
            KnowledgeBase.objects.editable_by(actor).filter(workspace=workspace).order_by("name")
        )

    def clean_origins(self) -> list[str]:
        """Return normalised origins, each once."""
        found: list[str] = []
        for line in self.cleaned_data["origins"].split():
            try:
                found.append(origins.normalise(line))
            except (ValueError, UnicodeError):
                raise forms.ValidationError(
                    _("“%(line)s” is no site’s address. Write it as https://www.example.com."), params={"line": line}
                ) from None
        if len(found) > origins.MOST:
            raise forms.ValidationError(_("At most %(most)s sites."), params={"most": origins.MOST})
        return list(dict.fromkeys(found))

    def clean_starters(self) -> list[str]:
        """Return the questions, without empty lines."""
        found = [line.strip() for line in self.cleaned_data["starters"].splitlines() if line.strip()]
        if len(found) > MOST_STARTERS:
            raise forms.ValidationError(_("At most four questions."))
        if any(len(line) > 120 for line in found):
            raise forms.ValidationError(_("A question has at most 120 characters."))
        return found

    def clean_color(self) -> str:
        """Return a colour on which white signs can be seen."""
        color = str(self.cleaned_data["color"]).lower()
        if not COLOR.fullmatch(color):
            raise forms.ValidationError(_("Write the colour as #2f5d50."))
        if 1.05 / (_luminance(color) + 0.05) < CONTRAST:
            raise forms.ValidationError(_("It is too light: the white sign on it could not be seen."))
        return color


def _luminance(color: str) -> float:
    """Return the relative luminance of sRGB, 0 to 1 (WCAG 2.2)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
