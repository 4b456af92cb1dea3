"""Reads of people, workspaces and what rights are made of."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.common.text import storable
from apps.workspaces.principals import Principal, Who

if TYPE_CHECKING:
    from apps.workspaces.models import (
        ApiKey,
        AuditEvent,
        Department,
        DepartmentMember,
        Invitation,
        Membership,
        Quota,
        Workspace,
    )


def _workspaces(who: Who, scope: str, *, managed: bool = False) -> Any:
    from apps.workspaces import rights

    return rights.workspaces(who, scope, rights.MANAGERS if managed else ())


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    """Reads of workspaces."""

    def visible_to(self, who: Who) -> Self:
        """Keep workspaces that ``who`` is in; a key's and a widget's are one. Staff get no shortcut."""
        from apps.workspaces import rights

        principal = Principal.of(who)
        if principal.kind == "widget":
            return self.filter(pk=principal.workspace_id)
        return self.filter(pk__in=rights.memberships(principal).values("workspace"))

    def editable_by(self, who: Who) -> Self:
        """Keep workspaces that ``who`` owns or administers."""
        return self.filter(pk__in=_workspaces(who, "workspace:write", managed=True))


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Reads of memberships."""

    def running(self) -> Self:
        """Keep all but operators' visits that are over, by the database's clock."""
        return self.filter(Q(support_until__isnull=True) | Q(support_until__gt=Now()))

    def visible_to(self, who: Who) -> Self:
        """Keep memberships of workspaces that ``who`` is in."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read"))

    def editable_by(self, who: Who) -> Self:
        """Keep memberships of workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=_workspaces(who, "workspace:write", managed=True))


class DepartmentQuerySet(models.QuerySet["Department"]):
    """Reads of departments."""

    def visible_to(self, who: Who) -> Self:
        """Keep departments of workspaces that ``who`` is in."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read"))

    def editable_by(self, who: Who) -> Self:
        """Keep departments of workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=_workspaces(who, "workspace:write", managed=True))


class DepartmentMemberQuerySet(models.QuerySet["DepartmentMember"]):
    """Reads of who is in which department."""

    def visible_to(self, who: Who) -> Self:
        """Keep those of workspaces that ``who`` is in."""
        return self.filter(department__workspace__in=_workspaces(who, "workspace:read"))

    def editable_by(self, who: Who) -> Self:
        """Keep those of workspaces that ``who`` owns or administers."""
        return self.filter(department__workspace__in=_workspaces(who, "workspace:write", managed=True))


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Reads of API keys."""

    def living(self) -> Self:
        """Keep keys that are neither revoked nor expired, by the database's clock."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()), revoked_at__isnull=True)

    def visible_to(self, who: Who) -> Self:
        """Keep one's own keys, and all keys to workspaces that ``who`` owns or administers."""
        own = Q(user=Principal.of(who).user_id, workspace__in=_workspaces(who, "workspace:read"))
        return self.filter(own | Q(workspace__in=_workspaces(who, "workspace:read", managed=True)))

    def editable_by(self, who: Who) -> Self:
        """Keep keys that ``who`` may revoke: the same."""
        own = Q(user=Principal.of(who).user_id, workspace__in=_workspaces(who, "workspace:write"))
        return self.filter(own | Q(workspace__in=_workspaces(who, "workspace:write", managed=True)))


class InvitationQuerySet(models.QuerySet["Invitation"]):
    """Reads of invitations."""

    def open(self) -> Self:
        """Keep those that still let somebody in."""
        return self.filter(accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=Now())

    def visible_to(self, who: Who) -> Self:
        """Keep invitations to workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read", managed=True))

    def editable_by(self, who: Who) -> Self:
        """Keep those that ``who`` may withdraw: the same."""
        return self.filter(workspace__in=_workspaces(who, "workspace:write", managed=True))


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    """Reads of the audit log."""

    def visible_to(self, who: Who) -> Self:
        """Keep events of workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read", managed=True))

    def editable_by(self, who: Who) -> Self:
        """Keep none: what happened is never changed."""
        return self.none()

    def matching(self, text: str) -> Self:
        """Keep events whose act, thing or person's address has ``text`` in it."""
        text = storable(text)
        said = Q(action__icontains=text) | Q(target_name__icontains=text) | Q(actor__email__icontains=text)
        return self.filter(said) if text else self


class QuotaQuerySet(models.QuerySet["Quota"]):
    """Reads of quotas."""

    def visible_to(self, who: Who) -> Self:
        """Keep those of workspaces that ``who`` owns or administers, and one's own."""
        own = Q(user=Principal.of(who).user_id, workspace__in=_workspaces(who, "workspace:read"))
        return self.filter(own | Q(workspace__in=_workspaces(who, "workspace:read", managed=True)))

    def editable_by(self, who: Who) -> Self:
        """Keep the people's quotas of workspaces that ``who`` owns or administers; the whole's is the operator's."""
        return self.filter(user__isnull=False, workspace__in=_workspaces(who, "workspace:write", managed=True))


class ShareQuerySet(models.QuerySet[Any]):
    """Reads of shares: for those who may manage what is shared."""

    def visible_to(self, who: Who) -> Self:
        """Keep shares of rows that ``who`` may manage."""
        shared = self.model._meta.get_field("content_object").related_model
        return self.filter(content_object__in=shared.objects.editable_by(who))

    def editable_by(self, who: Who) -> Self:
        """Keep those that ``who`` may withdraw: the same."""
        return self.visible_to(who)
