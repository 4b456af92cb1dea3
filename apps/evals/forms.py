"""What people type about data sets."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from apps.evals.models import Dataset
from apps.knowledge.models import Document, KnowledgeBase


class DatasetForm(forms.Form):
    """A new data set; one of documents needs the base whose documents answer."""

    name = forms.CharField(label=_("Name"), max_length=100)
    kind = forms.ChoiceField(label=_("What is measured"), choices=Dataset.Kind.choices)
    knowledge_base: Any = forms.ModelChoiceField(
        label=_("Knowledge base"),
        queryset=None,
        required=False,
        empty_label=_("none"),
        help_text=_("Where the questions are asked. Only for documents that answer a question."),
    )
    restricted = forms.BooleanField(label=_("Only for people it is shared with"), required=False)

    def __init__(self, *args: Any, bases: QuerySet[KnowledgeBase], **kwargs: Any) -> None:
        """``bases``: those that the person may read."""
        super().__init__(*args, **kwargs)
        field: Any = self.fields["knowledge_base"]
        field.queryset = bases
        field.label_from_instance = lambda base: base.name

    def clean(self) -> dict[str, Any]:
        """Ask for the base where the kind needs one."""
        given = super().clean() or {}
        if given.get("kind") == Dataset.Kind.RETRIEVAL and not given.get("knowledge_base"):
            self.add_error("knowledge_base", _("Choose the base whose documents answer the questions."))
        return given


class CaseForm(forms.Form):
    """A question with what is right for it: an intent, or documents."""

    text = forms.CharField(label=_("Question"), max_length=4000, widget=forms.Textarea(attrs={"rows": 2}))
    intent = forms.ChoiceField(label=_("What it wants"))
    documents = forms.MultipleChoiceField(
        label=_("Documents that answer it"),
        help_text=_("Several with Ctrl or ⌘."),
        widget=forms.SelectMultiple(attrs={"size": 8}),
    )

    def __init__(
        self, *args: Any, dataset: Dataset, intents: Sequence[str], documents: Sequence[Document], **kwargs: Any
    ) -> None:
        """Offer what fits the set's kind alone."""
        super().__init__(*args, **kwargs)
        intent: Any = self.fields["intent"]
        intent.choices = [(name, name) for name in intents]
        answering: Any = self.fields["documents"]
        answering.choices = [(str(one.pk), one.name) for one in documents]
        del self.fields["documents" if dataset.kind == Dataset.Kind.INTENT else "intent"]
