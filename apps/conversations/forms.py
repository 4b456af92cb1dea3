"""The question as a plain form, for pages without script and for the first question."""

from typing import Any
from uuid import uuid4

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.conversations.frames import MAX_QUESTION, Ask


class AskForm(forms.Form):
    """A question, where to look, and the language of the answer."""

    text = forms.CharField(label=_("Your question"), max_length=MAX_QUESTION, widget=forms.Textarea)
    kb = forms.Field(required=False, widget=forms.MultipleHiddenInput)
    language = forms.ChoiceField(required=False, choices=[("", ""), ("en", "English"), ("zh-hans", "简体中文")])
    client_id = forms.CharField(required=False, max_length=64)

    def clean_kb(self) -> list[Any]:
        """Keep ids only; whether they may be read is the door's to say."""
        field = forms.UUIDField()
        return [field.clean(value) for value in self.data.getlist("kb") if value][:100]  # type: ignore[attr-defined]

    def ask(self) -> Ask:
        """Return the socket's frame that says the same."""
        data = self.cleaned_data
        return Ask(
            text=data["text"],
            client_id=data["client_id"] or uuid4().hex,
            knowledge_bases=data["kb"],
            language=data["language"] or None,
        )
