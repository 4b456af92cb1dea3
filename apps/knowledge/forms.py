"""Forms of knowledge bases."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.common.text import display_name
from apps.knowledge.errors import NameTaken
from apps.knowledge.models import KnowledgeBase
from apps.workspaces.models import Membership, User, Workspace


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


class ShareForm(forms.Form):
    """A person of the workspace, and what they may do with a base."""

    email = forms.EmailField(label=_("E-mail address"))
    level = forms.ChoiceField(label=_("May"), choices=[("read", _("Read")), ("manage", _("Manage"))])

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        """``workspace`` is where the person must be a member."""
        super().__init__(*args, **kwargs)
        self.workspace = workspace

    def clean_email(self) -> User:
        """Return the member with this address."""
        found = Membership.objects.filter(workspace=self.workspace, user__email__iexact=self.cleaned_data["email"])
        membership = found.select_related("user").first()
        if membership is None:
            raise forms.ValidationError(_("Nobody in this workspace has this address. Check it, or invite them first."))
        return membership.user
