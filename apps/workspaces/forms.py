"""Forms of people and workspaces."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.workspaces.models import AuditEvent, Department, Membership, Quota, Role, Workspace
from apps.workspaces.principals import SCOPES
from apps.workspaces.services.sharing import Subject

ROLES = [(role.value, role.label) for role in (Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OWNER)]
KEY_PRESETS = {
    "ask": ["agents:read", "conversations:write", "knowledge:read", "models:read"],
    "read": [scope for scope in SCOPES if scope.endswith(":read")],
    "all": list(SCOPES),
}


class WorkspaceForm(forms.Form):
    """A new workspace."""

    name = forms.CharField(label=_("Name"), max_length=100)


class SettingsForm(forms.ModelForm[Workspace]):
    """What an owner or admin may change about a workspace."""

    class Meta:
        model = Workspace
        fields = ("name", "keep_conversations_days", "keep_audit_days")
        help_texts = {
            "keep_conversations_days": _(
                "Days after the last question, then a conversation is erased. Empty: for ever."
            ),
            "keep_audit_days": _("Days, then entries of the audit log are erased. Empty: for ever."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Days count from 1."""
        super().__init__(*args, **kwargs)
        for name, least in (("keep_conversations_days", 1), ("keep_audit_days", 30)):
            self.fields[name] = forms.IntegerField(
                label=self.fields[name].label,
                help_text=self.fields[name].help_text,
                min_value=least,
                max_value=36_500,
                required=False,
            )


class InvitationForm(forms.Form):
    """Whom to invite, as what, into which department."""

    email = forms.EmailField(
        label=_("E-mail address"), required=False, help_text=_("Empty: whoever opens the link first may join.")
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial=Role.MEMBER.value)
    department = forms.ModelChoiceField(
        label=_("Department"), queryset=Department.objects.none(), required=False, empty_label=_("none")
    )

    def __init__(self, *args: Any, departments: Any, **kwargs: Any) -> None:
        """``departments`` are those of the workspace that the actor may see."""
        super().__init__(*args, **kwargs)
        self.fields["department"].queryset = departments  # type: ignore[attr-defined]
        self.fields["department"].label_from_instance = lambda row: row.name  # type: ignore[attr-defined]


class ShareForm(forms.Form):
    """With whom to share, and what they may do."""

    subject = forms.ChoiceField(label=_("With"))
    level = forms.ChoiceField(label=_("May"))

    def __init__(self, *args: Any, members: Any, departments: Any, levels: Sequence[str], **kwargs: Any) -> None:
        """``members`` and ``departments`` are those of the workspace; ``levels`` what this kind of thing offers."""
        super().__init__(*args, **kwargs)
        self.people = {str(row.user_id): row.user for row in people_of(members)}
        self.departments = {str(row.pk): row for row in departments.order_by("name")}
        words = {"read": _("Read"), "manage": _("Manage: change, add to, share, delete")}
        self.fields["level"].choices = [(level, words[level]) for level in levels]  # type: ignore[attr-defined]
        self.fields["subject"].choices = [  # type: ignore[attr-defined]
            (_("Roles"), [("role:viewer", _("Everybody in the workspace")), ("role:member", _("Members and admins"))]),
            (_("Departments"), [(f"department:{pk}", row.name) for pk, row in self.departments.items()]),
            (_("People"), [(f"user:{pk}", f"{row.shown_name} ({row.email})") for pk, row in self.people.items()]),
        ]

    def subject_chosen(self) -> Subject:
        """Return with whom."""
        kind, _colon, value = self.cleaned_data["subject"].partition(":")
        if kind == "role":
            return Subject(role=value)
        return Subject(user=self.people[value]) if kind == "user" else Subject(department=self.departments[value])


class RoleForm(forms.Form):
    """A member's new role."""

    role = forms.ChoiceField(choices=ROLES)


class DepartmentForm(forms.Form):
    """A department: its name, and the one above."""

    name = forms.CharField(label=_("Name"), max_length=100)
    parent = forms.ModelChoiceField(
        label=_("Below"), queryset=Department.objects.none(), required=False, empty_label=_("at the top")
    )

    def __init__(self, *args: Any, departments: Any, **kwargs: Any) -> None:
        """``departments`` are those of the workspace that the actor may see."""
        super().__init__(*args, **kwargs)
        self.fields["parent"].queryset = departments  # type: ignore[attr-defined]
        self.fields["parent"].label_from_instance = lambda row: row.name  # type: ignore[attr-defined]


class DepartmentMembersForm(forms.Form):
    """Who is in a department."""

    people = forms.MultipleChoiceField(label=_("People"), required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, members: Any, **kwargs: Any) -> None:
        """``members`` are the workspace's."""
        super().__init__(*args, **kwargs)
        choices = [(str(member.user_id), member.user.shown_name) for member in members]
        self.fields["people"].choices = choices  # type: ignore[attr-defined]


class ApiKeyForm(forms.Form):
    """A new API key."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What will use it."))
    may = forms.ChoiceField(
        label=_("May"),
        choices=[
            ("ask", _("Search and ask questions")),
            ("read", _("Read everything that I may read")),
            ("all", _("Everything that I may do here")),
            ("chosen", _("What is chosen below")),
        ],
    )
    scopes = forms.MultipleChoiceField(
        label=_("Chosen rights"), choices=list(SCOPES.items()), required=False, widget=forms.CheckboxSelectMultiple
    )
    days = forms.ChoiceField(
        label=_("Expires"),
        choices=[("30", _("in 30 days")), ("90", _("in 90 days")), ("365", _("in a year")), ("", _("never"))],
        required=False,
        initial="90",
    )

    def clean(self) -> dict[str, Any]:
        """Turn the preset into scopes and the days into a moment."""
        found = super().clean() or {}
        if found.get("may") in KEY_PRESETS:
            found["scopes"] = KEY_PRESETS[found["may"]]
        elif not found.get("scopes"):
            self.add_error("scopes", _("Choose at least one right."))
        found["expires_at"] = timezone.now() + timedelta(days=int(found["days"])) if found.get("days") else None
        return found


class LimitForm(forms.Form):
    """How much one person may use."""

    person = forms.ChoiceField(label=_("Person"))
    kind = forms.ChoiceField(label=_("Of what"), choices=Quota.Kind.choices)
    limit = forms.IntegerField(
        label=_("At most"), min_value=0, max_value=2**50, required=False, help_text=_("Empty: the server’s own limit.")
    )

    def __init__(self, *args: Any, members: Any, **kwargs: Any) -> None:
        """``members`` are the workspace's."""
        super().__init__(*args, **kwargs)
        choices = [(str(member.user_id), member.user.email) for member in members]
        self.fields["person"].choices = choices  # type: ignore[attr-defined]


class LogFilterForm(forms.Form):
    """Which entries of the audit log; days are those of the reader's time zone, both included."""

    q = forms.CharField(label=_("Act, thing or e-mail address"), max_length=200, required=False)
    kind = forms.ChoiceField(label=_("Who"), choices=[("", _("Anybody")), *AuditEvent.Kind.choices], required=False)
    since = forms.DateField(label=_("Since"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label=_("Until"), required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def chosen(self) -> dict[str, Any]:
        """Return what was asked for, as ``AuditEvent.objects.chosen`` takes it; what does not fit is left out."""
        self.is_valid()
        given = {name: value for name, value in self.cleaned_data.items() if value}
        if "since" in given:
            given["since"] = _midnight(given["since"])
        if "until" in given:
            given["until"] = _midnight(given["until"]) + timedelta(days=1)
        return given


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


class DeleteWorkspaceForm(forms.Form):
    """Say which workspace is meant, by its name."""

    name = forms.CharField(label=_("Name of the workspace"), max_length=100)

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        """``workspace`` is the one to be deleted."""
        super().__init__(*args, **kwargs)
        self.workspace = workspace

    def clean_name(self) -> str:
        """Refuse any other name."""
        name = str(self.cleaned_data["name"]).strip()
        if name != self.workspace.name:
            raise forms.ValidationError(_("This is not its name. Nothing was deleted."))
        return name


def people_of(members: Any) -> list[Membership]:
    """Return members with their people, by name, for a choice."""
    return list(members.select_related("user").order_by("user__name", "user__email"))
