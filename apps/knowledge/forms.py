"""Forms of knowledge bases."""

from typing import ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.common.text import display_name
from apps.knowledge.errors import NameTaken
from apps.knowledge.models import KnowledgeBase


class KnowledgeBaseForm(forms.ModelForm[KnowledgeBase]):
    """Name, description and reach of a base."""

    class Meta:
        model = KnowledgeBase
        fields = ("name", "description", "restricted")
        help_texts: ClassVar = {
            "description": _("What is in it. Shown to people when they choose where to search."),
            "restricted": _("Otherwise everybody in this workspace can read it."),
        }

    def clean_name(self) -> str:
        """Refuse a name that another base of the workspace has."""
        name = display_name(self.cleaned_data["name"], limit=100)
        same = KnowledgeBase.objects.filter(workspace=self.instance.workspace, name=name, deleted_at__isnull=True)
        if same.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(NameTaken(name=name).message)
        return name
