"""Forms of models."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.models.models import Kind
from apps.models.providers import CHOICES, CUSTOM, VENDORS


class AddModelForm(forms.Form):
    """A model by vendor, name and key; the address is asked for where the vendor has none of its own."""

    provider = forms.ChoiceField(label=_("Vendor"), choices=CHOICES)
    name = forms.CharField(
        label=_("Model"), max_length=200, help_text=_("As the vendor writes it, for example text-embedding-v4.")
    )
    api_key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted, and never shown again."),
    )
    kind = forms.ChoiceField(label=_("For"), choices=Kind.choices, initial=Kind.CHAT)
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
        if "kind" in cleaned and cleaned["kind"] not in vendor.kinds:
            self.add_error("kind", _("This vendor has no models of this kind."))
        if "base_url" in cleaned and not (cleaned["base_url"] or vendor.base_url):
            self.add_error("base_url", _("Enter the address: this vendor has none of its own."))
        if vendor.needs_key and not cleaned.get("api_key") and not cleaned.get("base_url"):
            self.add_error("api_key", _("This vendor asks for a key."))
        return cleaned
