"""The question as a plain form, for pages without script and for the first question."""

from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.conversations.frames import MAX_ATTACHMENTS, MAX_QUESTION, Ask


class AskForm(forms.Form):
    """A question, where to look, what comes with it, and the language of the answer."""

    text = forms.CharField(label=_("Your question"), max_length=MAX_QUESTION, required=False, widget=forms.Textarea)
    kb = forms.Field(required=False, widget=forms.MultipleHiddenInput)
    attachment = forms.Field(required=False, widget=forms.MultipleHiddenInput)
    web = forms.BooleanField(required=False)
    language = forms.ChoiceField(required=False, choices=[("", ""), ("en", "English"), ("zh-hans", "简体中文")])
    client_id = forms.CharField(required=False, max_length=64)
    parent = forms.UUIDField(required=False)
    regenerate = forms.UUIDField(required=False)
    model = forms.UUIDField(required=False)

    def clean_kb(self) -> list[UUID]:
        """Keep ids only; whether they may be read is the door's to say."""
        return self._ids("kb", most=100)

    def clean_attachment(self) -> list[UUID]:
        """Keep ids only, as many as a question may have."""
        return self._ids("attachment", most=MAX_ATTACHMENTS)

    def _ids(self, name: str, *, most: int) -> list[UUID]:
        field = forms.UUIDField()
        return [field.clean(value) for value in self.data.getlist(name) if value][:most]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Ask for words, unless an old question is to be answered again."""
        data: dict[str, Any] = super().clean() or {}
        if not data.get("regenerate") and not (data.get("text") or "").strip() and "text" not in self.errors:
            self.add_error("text", _("The question is empty. Write one and send it again."))
        return data

    def ask(self) -> Ask:
        """Return the socket's frame that says the same."""
        data = self.cleaned_data
        return Ask(
            text=data["text"],
            client_id=data["client_id"] or uuid4().hex,
            knowledge_bases=data["kb"],
            attachments=data["attachment"],
            web=data["web"],
            language=data["language"] or None,
            parent=data["parent"],
            regenerate=data["regenerate"],
            model=data["model"],
        )
