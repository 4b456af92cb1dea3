"""The form of an agent."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.agents.models import Agent
from apps.agents.tools import catalog
from apps.knowledge.filter_fields import ROWS, ask_for_facts, asked_for, facts_of, folder_choices, searchable
from apps.knowledge.models import KnowledgeBase
from apps.models.models import ModelConfig
from apps.workspaces.models import User, Workspace

TOOLS = {
    "doc_retrieval": _("Search documents"),
    "grep_chunks": _("Search for exact words"),
    "list_chunks": _("Read passages in full"),
    "get_document_info": _("Look up documents"),
    "web_search": _("Search the web, where the asker turns it on"),
    "web_fetch": _("Read web pages"),
    "write_plan": _("Plan longer tasks"),
}
LANGUAGES = [("", _("The question’s own")), ("en", "English"), ("zh-hans", "简体中文")]
THINKING = [("", _("As the model is set")), ("on", _("On")), ("off", _("Off"))]
QUESTIONS, QUESTION = 6, 200


class _Models(forms.ModelChoiceField[ModelConfig]):
    unseen: UUID | None = None  # what others chose, and whoever edits may not see

    def label_from_instance(self, obj: Any) -> str:
        return str(_("As others chose; you may not see it")) if obj.pk == self.unseen else str(obj.name)


class AgentForm(forms.Form):
    """Everything that can be said of an agent; ``values`` is what the service saves."""

    name = forms.CharField(label=_("Name"), max_length=100)
    instructions = forms.CharField(
        label=_("Instructions"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text=_(
            "How it answers, for whom, in which tone. The rules about evidence stand above and cannot be changed."
        ),
    )
    opening_questions = forms.CharField(
        label=_("Opening questions"),
        required=False,
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("One a line, at most six. They are offered before the first question."),
    )
    language = forms.ChoiceField(label=_("Language of answers"), choices=LANGUAGES, required=False)
    tools = forms.MultipleChoiceField(label=_("Tools"), required=False, widget=forms.CheckboxSelectMultiple)
    all_knowledge_bases = forms.BooleanField(label=_("Every base that the asker may read"), required=False)
    knowledge_bases = forms.ModelMultipleChoiceField(
        label=_("Only these knowledge bases"),
        queryset=KnowledgeBase.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    tags = forms.CharField(
        label=_("Only documents with these tags"), required=False, max_length=500, help_text=_("Separated by commas.")
    )
    document_name = forms.CharField(label=_("Only documents whose name contains"), required=False, max_length=200)
    added_from = forms.DateField(
        label=_("Only documents added from"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    added_to = forms.DateField(
        label=_("Only documents added to"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    folders = forms.MultipleChoiceField(label=_("Only documents in these folders"), required=False)
    memory = forms.BooleanField(label=_("Uses the asker’s memory"), required=False)
    restricted = forms.BooleanField(label=_("Only for people it is shared with"), required=False)
    model = _Models(
        label=_("Model"),
        queryset=ModelConfig.objects.none(),
        required=False,
        empty_label=_("The workspace’s default"),
    )
    temperature = forms.FloatField(
        label=_("Temperature"), required=False, min_value=0, max_value=2, help_text=_("0 to 2; empty: the model’s own.")
    )
    max_tokens = forms.IntegerField(
        label=_("Longest answer, in tokens"), required=False, min_value=64, max_value=128_000
    )
    thinking = forms.ChoiceField(label=_("Thinking"), choices=THINKING, required=False)
    rounds = forms.IntegerField(label=_("Rounds of tools a question"), required=False, min_value=1, max_value=20)
    calls = forms.IntegerField(label=_("Tool calls a question"), required=False, min_value=1, max_value=100)
    wall_s = forms.IntegerField(label=_("Seconds a question"), required=False, min_value=10, max_value=900)
    tokens = forms.IntegerField(label=_("Tokens a question"), required=False, min_value=2_000, max_value=5_000_000)

    def __init__(
        self, *args: Any, workspace: Workspace, actor: User, agent: Agent | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        bases = KnowledgeBase.objects.visible_to(actor).filter(workspace=workspace).order_by("name")
        models = ModelConfig.objects.visible_to(actor).usable_in(workspace.pk).filter(kind="chat", enabled=True)
        self.fields["knowledge_bases"].queryset = bases  # type: ignore[attr-defined]
        there = searchable(bases, actor)
        self.fields["knowledge_bases"].choices = [(base.id, base.name) for base in there]  # type: ignore[attr-defined]
        self.fields["folders"].choices = folder_choices(there)  # type: ignore[attr-defined]
        self._keys = {fact.key for base in there for fact in base.facts}
        ask_for_facts(self, there, self._shown(self.initial.get("metadata", ())))
        if agent and agent.model_id:  # also one that is switched off, or that the editor may not see
            models = ModelConfig.objects.filter(Q(pk__in=models.values("pk")) | Q(pk=agent.model_id))
            if not ModelConfig.objects.visible_to(actor).filter(pk=agent.model_id).exists():
                self.fields["model"].unseen = agent.model_id  # type: ignore[attr-defined]
        self.fields["model"].queryset = models.order_by("name")  # type: ignore[attr-defined]
        names = [tool.name for tool in catalog.choosable()]
        self.fields["tools"].choices = [(name, TOOLS.get(name, name)) for name in names]  # type: ignore[attr-defined]

    def clean_opening_questions(self) -> list[str]:
        """Keep lines that say something."""
        lines = [" ".join(line.split()) for line in self.cleaned_data["opening_questions"].splitlines()]
        kept = [line for line in lines if line]
        if len(kept) > QUESTIONS or any(len(line) > QUESTION for line in kept):
            raise forms.ValidationError(_("At most six questions of 200 characters each."))
        return kept

    def clean_tags(self) -> list[str]:
        """Keep tags that say something."""
        return [tag for part in self.cleaned_data["tags"].replace("，", ",").split(",") if (tag := part.strip())][:20]

    def _shown(self, conditions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return those of an agent's conditions that the form has a row for."""
        return [one for one in conditions if one.get("field") in self._keys][:ROWS]

    @property
    def facts(self) -> list[forms.BoundField]:
        """The fields that ask for facts."""
        return asked_for(self)

    def values(self, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the fields as ``editing.save_agent`` takes them; what the form did not show of ``filters`` stays."""
        data = self.cleaned_data
        before = filters or {}
        shown = {folder for folder, _name in self.fields["folders"].choices}  # type: ignore[attr-defined]
        unseen = [folder for folder in before.get("folders", ()) if folder not in shown]
        stored = before.get("metadata", ())
        seen = self._shown(stored)
        asked = {
            "folders": [*data["folders"], *unseen],
            "metadata": [*facts_of(data), *(one for one in stored if one not in seen)],
            "tags": data["tags"],
            "name": data["document_name"],
            "added_from": data["added_from"].isoformat() if data["added_from"] else None,
            "added_to": data["added_to"].isoformat() if data["added_to"] else None,
        }
        others = {name: value for name, value in before.items() if name not in asked}
        kept = {**others, **{name: value for name, value in asked.items() if value}}
        budget = {name: data[name] for name in ("rounds", "calls", "wall_s", "tokens") if data[name] is not None}
        configuration: dict[str, Any] = {
            name: data[name] for name in ("temperature", "max_tokens") if data[name] is not None
        }
        if data["thinking"]:
            configuration["thinking"] = data["thinking"] == "on"
        if budget:
            configuration["budget"] = budget
        if kept:
            configuration["filters"] = kept
        plain = ("name", "instructions", "tools", "all_knowledge_bases", "memory", "language", "restricted")
        return {
            **{name: data[name] for name in plain},
            "opening_questions": data["opening_questions"],
            "knowledge_bases": [base.pk for base in data["knowledge_bases"]],
            "model": data["model"].pk if data["model"] else None,
            "configuration": configuration,
        }


LABELS = {name: field.label for name, field in AgentForm.base_fields.items()} | {"configuration": _("Limits")}


def initial_of(agent: Agent) -> dict[str, Any]:
    """Return an agent's fields as the form shows them."""
    settings = agent.configuration if isinstance(agent.configuration, dict) else {}
    budget = settings.get("budget")
    thinking = settings.get("thinking")
    given = settings.get("filters")
    filters: dict[str, Any] = given if isinstance(given, dict) else {}
    return {
        "tags": ", ".join(map(str, filters.get("tags", ()))),
        "document_name": filters.get("name", ""),
        "added_from": filters.get("added_from"),
        "added_to": filters.get("added_to"),
        "folders": filters.get("folders", ()),
        "metadata": filters.get("metadata", ()),
        "name": agent.name,
        "instructions": agent.instructions,
        "opening_questions": "\n".join(map(str, agent.opening_questions)),
        "language": agent.language,
        "tools": agent.tools,
        "all_knowledge_bases": agent.all_knowledge_bases,
        "knowledge_bases": list(agent.knowledge_bases.values_list("pk", flat=True)),
        "memory": agent.memory,
        "restricted": agent.restricted,
        "model": agent.model_id,
        "temperature": settings.get("temperature"),
        "max_tokens": settings.get("max_tokens"),
        "thinking": "" if thinking is None else "on" if thinking else "off",
        **(budget if isinstance(budget, dict) else {}),
    }
