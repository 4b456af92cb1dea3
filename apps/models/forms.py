"""Forms of models and budgets."""

from decimal import Decimal
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError as SchemaError

from apps.models import discovery
from apps.models.budget_services import UNITS
from apps.models.configuration import Configuration, words_of
from apps.models.models import TOKENS, Kind, ModelConfig, Period, Scope
from apps.models.providers import CHOICES, CUSTOM, VENDORS, facts

ABILITIES = [
    ("tools", _("Calls tools")),
    ("forced_tool_choice", _("Can be made to call one")),
    ("parallel_tool_calls", _("Several calls at once")),
    ("logprobs", _("Shows probabilities")),
    ("json_schema", _("Answers in a given JSON schema")),
    ("json_mode", _("Answers in JSON")),
    ("thinking_switch", _("Thinking can be switched")),
    ("stream_usage", _("Counts tokens in streams")),
    ("cache_breakpoints", _("Caches up to a mark")),
]
THINKING = [("default", _("As the vendor does")), ("on", _("On")), ("off", _("Off"))]
REPLAY = [
    ("never", _("Never")),
    ("tool_turns", _("With calls of tools")),
    ("always", _("Always")),
]
LIMITS = {
    Kind.CHAT: ("context_window", "max_output", "max_concurrent"),
    Kind.VISION: ("context_window", "max_output", "max_concurrent"),
    Kind.EMBEDDING: ("dimensions", "max_input", "max_batch", "max_concurrent"),
    Kind.RERANK: ("max_input", "max_batch", "max_concurrent"),
    Kind.SPEECH: ("max_concurrent",),
}
PRICES = {"price_input": "input", "price_cached": "cached", "price_output": "output"}


def _key_field(help_text: Any) -> forms.CharField:
    widget = forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"})
    return forms.CharField(label=_("Key"), required=False, max_length=500, widget=widget, help_text=help_text)


class AddModelForm(forms.Form):
    """A model by vendor, key and name. The rest is known of the vendor, guessed by the name, or asked for."""

    provider = forms.ChoiceField(label=_("Vendor"), choices=[("", _("Choose a vendor")), *CHOICES])
    api_key = _key_field(_("Stored encrypted, and never shown again."))
    name = forms.CharField(
        label=_("Model"),
        max_length=200,
        widget=forms.TextInput(attrs={"list": "offered-models", "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("As the vendor writes it, for example text-embedding-v4."),
    )
    kind = forms.ChoiceField(label=_("For"), choices=[("", _("As its name says")), *Kind.choices], required=False)
    base_url = forms.URLField(
        label=_("Address"),
        required=False,
        max_length=500,
        assume_scheme="https",
        help_text=_("Empty: the vendor’s own. Usually it ends in /v1."),
    )

    def clean(self) -> dict[str, Any]:
        """Ask for what this vendor needs."""
        cleaned = super().clean() or {}
        vendor = VENDORS.get(cleaned.get("provider", ""), VENDORS[CUSTOM])
        if not cleaned.get("kind"):
            cleaned["kind"] = discovery.guess_kind(vendor.key, cleaned.get("name", ""))
        if cleaned["kind"] not in vendor.kinds:
            self.add_error("kind", _("This vendor has no models of this kind."))
        if "base_url" in cleaned and not (cleaned["base_url"] or vendor.base_url):
            self.add_error("base_url", _("Enter the address: this vendor has none of its own."))
        if vendor.needs_key and not cleaned.get("api_key") and not cleaned.get("base_url"):
            self.add_error("api_key", _("This vendor asks for a key."))
        return cleaned


class ListModelsForm(forms.Form):
    """What it takes to ask a vendor for its models."""

    provider = forms.ChoiceField(choices=CHOICES)
    api_key = forms.CharField(required=False, max_length=500)
    base_url = forms.URLField(required=False, max_length=500, assume_scheme="https")


class ModelSettingsForm(forms.Form):
    """Everything that can be changed of a model. An empty limit or price is the documented one."""

    name = forms.CharField(label=_("Model"), max_length=200)
    base_url = forms.URLField(label=_("Address"), max_length=500, assume_scheme="https")
    api_key = _key_field(_("Empty keeps the stored key. A new address needs the key entered again."))
    fallback = forms.ModelChoiceField(
        ModelConfig.objects.none(),
        label=_("Instead, while it is down"),
        required=False,
        empty_label=_("Nothing: the error is shown"),
    )
    context_window = forms.IntegerField(label=_("Context window, in tokens"), required=False)
    max_output = forms.IntegerField(label=_("Longest answer, in tokens"), required=False)
    dimensions = forms.IntegerField(
        label=_("Numbers in a vector"), required=False, help_text=_("Measured by the first test.")
    )
    max_input = forms.IntegerField(label=_("Longest text, in tokens"), required=False)
    max_batch = forms.IntegerField(label=_("Texts in one request"), required=False)
    max_concurrent = forms.IntegerField(
        label=_("Calls at the same time"), required=False, help_text=_("0: as many as come.")
    )
    logits = forms.BooleanField(
        label=_("Scores are raw logits"), required=False, help_text=_("Noticed by a test, and when a score shows it.")
    )
    price_input = forms.DecimalField(label=_("A million tokens in"), required=False)
    price_cached = forms.DecimalField(
        label=_("Of those in, cached"), required=False, help_text=_("Empty: as much as others.")
    )
    price_output = forms.DecimalField(label=_("A million tokens out"), required=False)
    currency = forms.CharField(label=_("Currency"), required=False, max_length=3, initial="USD")
    thinking = forms.ChoiceField(label=_("Thinking before the answer"), choices=THINKING)
    reasoning_replay = forms.ChoiceField(
        label=_("Earlier thinking is sent back"),
        choices=REPLAY,
        help_text=_("Some vendors refuse a turn without it, others a turn with it. What they refuse is learned."),
    )
    capabilities = forms.MultipleChoiceField(
        label=_("Abilities"), choices=ABILITIES, required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, model: ModelConfig, others: QuerySet[ModelConfig], **kwargs: Any) -> None:
        """``others`` are those that may stand in for ``model``."""
        self.model = model
        self.known = facts(model.provider, model.kind, model.name)
        self.documented = Configuration.model_validate(self.known)
        kwargs["initial"] = self._initial()
        super().__init__(*args, **kwargs)
        chat = model.kind in (Kind.CHAT, Kind.VISION)
        keep = {"name", "base_url", "api_key", "currency", *PRICES, *LIMITS[Kind(model.kind)]}
        keep |= {"thinking", "reasoning_replay", "capabilities"} if chat else set()
        keep |= set() if model.kind == Kind.EMBEDDING else {"fallback"}
        keep |= {"logits"} if model.kind == Kind.RERANK else set()
        for name in [name for name in self.fields if name not in keep]:
            del self.fields[name]
        for name in LIMITS[Kind(model.kind)]:
            self.fields[name].widget.attrs["placeholder"] = getattr(self.documented, name) or ""
        if "fallback" in self.fields:
            self.fields["fallback"].queryset = others  # type: ignore[attr-defined]
            self.fields["fallback"].label_from_instance = _shown  # type: ignore[attr-defined]

    def _initial(self) -> dict[str, Any]:
        stored = self.model.configuration if isinstance(self.model.configuration, dict) else {}
        price = stored.get("price") or self.known.get("price") or {}
        limits = {name: stored.get(name) for name in LIMITS[Kind(self.model.kind)]}
        return {
            "name": self.model.name,
            "base_url": self.model.base_url,
            "fallback": self.model.fallback_id,
            **limits,
            **{field: price.get(name) for field, name in PRICES.items()},
            "currency": price.get("currency", "USD"),
            "logits": stored.get("logits", False),
            "thinking": stored.get("thinking", "default"),
            "reasoning_replay": stored.get("reasoning_replay", self.documented.reasoning_replay),
            "capabilities": stored.get("capabilities", self.documented.capabilities),
        }

    def clean(self) -> dict[str, Any]:
        """Make the configuration; what is as documented is left out, so that it follows the documentation."""
        cleaned = super().clean() or {}
        values = {name: cleaned[name] for name in LIMITS[Kind(self.model.kind)] if cleaned.get(name) is not None}
        for name in ("thinking", "reasoning_replay", "capabilities", "logits"):
            if name in cleaned and _differs(cleaned[name], getattr(self.documented, name)):
                values[name] = cleaned[name]
        price = {name: str(cleaned[field]) for field, name in PRICES.items() if cleaned.get(field) is not None}
        if price:
            price = {"input": "0", "currency": (cleaned.get("currency") or "USD").upper(), **price}
            if _differs(price, self.known.get("price")):
                values["price"] = price
        try:
            Configuration.model_validate(values)
        except SchemaError as error:
            for problem in error.errors():
                self.add_error(_field_of(problem["loc"], self.fields), words_of(problem))
        cleaned["configuration"] = values
        return cleaned

    def changes(self) -> dict[str, Any]:
        """Return what ``services.change_model`` takes."""
        names = ("name", "base_url", "api_key", "configuration", "fallback")
        return {name: self.cleaned_data[name] for name in names if name in self.cleaned_data}


def _shown(model: ModelConfig) -> str:
    return f"{model.name} · {model.get_provider_display()}"


def _differs(chosen: Any, documented: Any) -> bool:
    if isinstance(chosen, list):
        return set(chosen) != set(documented)
    if isinstance(chosen, dict) and isinstance(documented, dict):
        return any(_number(chosen.get(name)) != _number(documented.get(name)) for name in {*chosen, *documented})
    return bool(chosen != documented)


def _number(value: Any) -> Any:
    return value if value is None or not str(value).replace(".", "", 1).isdigit() else Decimal(str(value))


def _field_of(place: tuple[int | str, ...], fields: Any) -> str | None:
    """Return the field that a problem in the configuration belongs to."""
    name = str(place[-1])
    found = next((field for field, part in PRICES.items() if part == name), name)
    return found if found in fields else None


class BudgetForm(forms.Form):
    """One budget."""

    scope = forms.ChoiceField(label=_("Applies to"), choices=Scope.choices)
    amount = forms.DecimalField(label=_("Limit"), min_value=Decimal(0), max_digits=18, decimal_places=6)
    unit = forms.ChoiceField(
        label=_("Unit"), choices=[(unit, _("tokens") if unit == TOKENS else unit) for unit in UNITS]
    )
    period = forms.ChoiceField(label=_("Starts anew"), choices=Period.choices, initial=Period.MONTH)
    subject = forms.TypedChoiceField(label=_("Person"), required=False, empty_value=None)

    def __init__(self, *args: Any, people: list[tuple[str, str]], **kwargs: Any) -> None:
        """``people`` are those of the workspace, as (id, address)."""
        super().__init__(*args, **kwargs)
        self.fields["subject"].choices = [("", _("everybody")), *people]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """A person belongs to a budget of persons alone."""
        cleaned = super().clean() or {}
        if cleaned.get("scope") != Scope.USER:
            cleaned["subject"] = None
        return cleaned
