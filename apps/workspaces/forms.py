"""Forms of workspaces."""

from django import forms
from django.utils.translation import gettext_lazy as _


class WorkspaceForm(forms.Form):
    """A new workspace."""

    name = forms.CharField(label=_("Name"), max_length=100)
