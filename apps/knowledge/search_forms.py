"""Forms of the search pages: what to look for and where, and a profile's settings."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.knowledge.filter_fields import Searchable, ask_for_facts, asked_for, facts_of, folder_choices
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.profiles import STAGES, Profile
from apps.models.models import ModelConfig


class SearchForm(forms.Form):
    """A question, the bases to look in (none chosen: all), and what documents must fit."""

    q = forms.CharField(label=_("Search for"), max_length=4_000, required=False)
    kb = forms.MultipleChoiceField(label=_("Knowledge bases"), required=False)
    name = forms.CharField(label=_("Document’s name contains"), max_length=200, required=False)
    tags = forms.CharField(
        label=_("Tags"), max_length=500, required=False, help_text=_("Separated by commas; a document has all of them.")
    )
    folder = forms.MultipleChoiceField(label=_("Folders"), required=False)
    added_from = forms.DateField(
        label=_("Added from"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    added_to = forms.DateField(
        label=_("Added to"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )

    def __init__(self, *args: Any, bases: Sequence[Searchable], **kwargs: Any) -> None:
        """``bases`` are those that the person may read here."""
        super().__init__(*args, **kwargs)
        self.fields["kb"].choices = [(str(base.id), base.name) for base in bases]  # type: ignore[attr-defined]
        self.fields["folder"].choices = folder_choices(bases)  # type: ignore[attr-defined]
        ask_for_facts(self, bases)
        self.bases = bases

    @property
    def facts(self) -> list[forms.BoundField]:
        """The fields that ask for facts."""
        return asked_for(self)

    @property
    def narrows(self) -> bool:
        """Whether anything but the question is asked."""
        return any(value for name, value in getattr(self, "cleaned_data", {}).items() if name != "q")

    def selected(self) -> list[UUID]:
        """Return the bases to search."""
        return [base.id for base in (self.chosen() or self.bases)]

    def chosen(self) -> list[Searchable]:
        """Return the bases that were chosen, by name."""
        return [base for base in self.bases if str(base.id) in self.cleaned_data["kb"]]

    def filters(self) -> Filters:
        """Return what documents must fit. Raises InvalidInput."""
        data = self.cleaned_data
        tags = [tag.strip() for tag in data["tags"].replace("，", ",").split(",") if tag.strip()]
        return Filters.of(
            {
                "tags": tags,
                "folders": data["folder"],
                "name": data["name"],
                "added_from": data["added_from"],
                "added_to": data["added_to"],
                "metadata": facts_of(data),
            }
        )


class _Models(forms.ModelChoiceField[ModelConfig]):
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class ProfileForm(forms.Form):
    """A profile's settings; an empty field is the default."""

    fusion = forms.ChoiceField(
        label=_("Fusion"), choices=[("convex", _("By scores")), ("rrf", _("By ranks"))], required=False
    )
    vector = forms.FloatField(label=_("Weight of meaning"), min_value=0, max_value=1, required=False)
    lexical = forms.FloatField(label=_("Weight of words"), min_value=0, max_value=1, required=False)
    trigram = forms.FloatField(label=_("Weight of characters"), min_value=0, max_value=1, required=False)
    top_k = forms.IntegerField(label=_("Passages"), min_value=1, max_value=50, required=False)
    candidates = forms.IntegerField(label=_("Candidates of each leg"), min_value=1, max_value=100, required=False)
    rerank = forms.ChoiceField(
        label=_("Rerank"),
        choices=[
            ("auto", _("What pays")),
            ("off", _("Off")),
            ("built_in", _("Built in, by tokens")),
            ("model", _("Rerank model")),
            ("llm", _("Chat model")),
        ],
        required=False,
    )
    rerank_model = _Models(
        label=_("Rerank model"), queryset=ModelConfig.objects.none(), required=False, empty_label=_("The default one")
    )
    mmr = forms.FloatField(
        label=_("Diversity"), min_value=0, max_value=1, required=False, help_text=_("1: relevance alone; empty: off.")
    )
    expansion = forms.ChoiceField(
        label=_("Other words"),
        choices=[("auto", _("When too little is found")), ("synonyms", _("Synonyms only")), ("off", _("Off"))],
        required=False,
    )
    threshold_vector = forms.FloatField(label=_("Least score of meaning"), required=False)
    threshold_fusion = forms.FloatField(label=_("Least score after fusion"), required=False)
    threshold_rerank = forms.FloatField(label=_("Least score after rerank"), required=False)

    def __init__(self, *args: Any, rerankers: QuerySet[ModelConfig], **kwargs: Any) -> None:
        """``rerankers`` are the models that may be named."""
        super().__init__(*args, **kwargs)
        self.fields["rerank_model"].queryset = rerankers  # type: ignore[attr-defined]
        self.fields["rerank_model"].label_from_instance = lambda row: row.name  # type: ignore[attr-defined]

    def settings(self) -> dict[str, Any]:
        """Return the settings as ``Profile`` takes them."""
        data = self.cleaned_data
        plain = {name: data[name] for name in ("fusion", "top_k", "candidates", "rerank", "mmr", "expansion")}
        found: dict[str, Any] = {name: value for name, value in plain.items() if value not in ("", None)}
        if data["rerank_model"]:
            found["rerank_model"] = str(data["rerank_model"].pk)
        weights = {name: data[name] for name in ("vector", "lexical", "trigram") if data[name] is not None}
        if weights:
            found["weights"] = weights
        least = {stage: data[f"threshold_{stage}"] for stage in STAGES if data[f"threshold_{stage}"] is not None}
        if least:
            found["thresholds"] = least
        return found

    def profile(self) -> Profile | None:
        """Return the profile that the fields say; None, with the field marked, where they say none."""
        try:
            return Profile.of(self.settings())
        except InvalidInput as error:
            self.add_error(None, error.message)
            return None

    @staticmethod
    def initial_of(saved: Profile) -> dict[str, Any]:
        """Return the fields' values for a profile that is saved."""
        values: dict[str, Any] = {
            name: getattr(saved, name)
            for name in ("fusion", "top_k", "candidates", "rerank", "rerank_model", "mmr", "expansion")
        }
        least = {f"threshold_{stage}": value for stage, value in saved.thresholds.items()}
        return values | saved.weights.model_dump() | least
