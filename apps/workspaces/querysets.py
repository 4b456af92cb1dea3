"""Reads of people, workspaces and what rights are made of."""

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.common.text import storable
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Principal, Who

if TYPE_CHECKING:
    from apps.workspaces.models import (
        ApiKey,
        AuditEvent,
        Department,
        DepartmentMember,
        Invitation,
        Membership,
        Notice,
        Quota,
        Workspace,
    )


def _workspaces(who: Who, scope: str, *, managed: bool = False) -> Any:
    from apps.workspaces import rights

    return rights.workspaces(who, scope, rights.MANAGERS if managed else ())


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    """Reads of workspaces."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep workspaces that ``who`` is in; a key's and a widget's are one. Staff get no shortcut."""
        from apps.workspaces import rights

        principal = Principal.of(who)
        if principal.kind == "widget":
            return self.filter(pk=principal.workspace_id)
        return self.filter(pk__in=rights.memberships(principal).values("workspace"))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep workspaces that ``who`` owns or administers."""
        return self.filter(pk__in=_workspaces(who, "workspace:write", managed=True))


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Reads of memberships."""

    def running(self) -> Self:
        """Keep all but operators' visits that are over, by the database's clock."""
        return self.filter(Q(support_until__isnull=True) | Q(support_until__gt=Now()))

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep memberships of workspaces that ``who`` is in."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read"))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep memberships of workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=_workspaces(who, "workspace:write", managed=True))


class DepartmentQuerySet(models.QuerySet["Department"]):
    """Reads of departments."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep departments of workspaces that ``who`` is in."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read"))

    @compiled
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

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep one's own keys, and all keys to workspaces that ``who`` owns or administers."""
        own = Q(user=Principal.of(who).user_id, workspace__in=_workspaces(who, "workspace:read"))
        return self.filter(own | Q(workspace__in=_workspaces(who, "workspace:read", managed=True)))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep keys that ``who`` may revoke: the same."""
        own = Q(user=Principal.of(who).user_id, workspace__in=_workspaces(who, "workspace:write"))
        return self.filter(own | Q(workspace__in=_workspaces(who, "workspace:write", managed=True)))


class InvitationQuerySet(models.QuerySet["Invitation"]):
    """Reads of invitations."""

    def open(self) -> Self:
        """Keep those that still let somebody in."""
        return self.filter(accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=Now())

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep invitations to workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read", managed=True))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep those that ``who`` may withdraw: the same."""
        return self.filter(workspace__in=_workspaces(who, "workspace:write", managed=True))


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    """Reads of the audit log."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep events of workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=_workspaces(who, "workspace:read", managed=True))

    def editable_by(self, who: Who) -> Self:
        """Keep none: what happened is never changed."""
        return self.none()

    def chosen(
        self,
        *,
        action: str = "",
        kind: str = "",
        actor: UUID | None = None,
        target: UUID | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        q: str = "",
    ) -> Self:
        """Keep events that fit all that is given; an action that ends with a dot is all of that kind of thing."""
        wanted: dict[str, Any] = {
            "action__startswith" if action.endswith(".") else "action": storable(action),
            "kind": kind,
            "actor": actor,
            "target_id": target,
            "at__gte": since,
            "at__lt": until,
        }
        return self.filter(**{name: value for name, value in wanted.items() if value}).matching(q)

    def matching(self, text: str) -> Self:
        """Keep events whose act, thing or person's address has ``text`` in it."""
        text = storable(text)
        said = Q(action__icontains=text) | Q(target_name__icontains=text) | Q(actor__email__icontains=text)
        return self.filter(said) if text else self


class NoticeQuerySet(models.QuerySet["Notice"]):
    """Reads of operators' notices."""

    def to_come(self) -> Self:
        """Keep those that are shown now or later."""
        return self.filter(ends_at__gt=Now())

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep those for everybody, and for workspaces that ``who`` is in."""
        mine = Q(workspace=None) | Q(workspace__in=_workspaces(who, "workspace:read"))
        return self.filter(mine) if Principal.of(who).is_authenticated else self.none()

    def editable_by(self, who: Who) -> Self:
        """Keep none: they are the operators', in the admin."""
        return self.none()


class QuotaQuerySet(models.QuerySet["Quota"]):
    """Reads of quotas."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep those of workspaces that ``who`` owns or administers, and one's own."""
        own = Q(user=Principal.of(who).user_id, workspace__in=_workspaces(who, "workspace:read"))
        return self.filter(own | Q(workspace__in=_workspaces(who, "workspace:read", managed=True)))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep the people's quotas of workspaces that ``who`` owns or administers; the whole's is the operator's."""
        return self.filter(user__isnull=False, workspace__in=_workspaces(who, "workspace:write", managed=True))


class ShareQuerySet(models.QuerySet[Any]):
    """Reads of shares: for those who may manage what is shared."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep shares of rows that ``who`` may manage."""
        shared = self.model._meta.get_field("content_object").related_model
        return self.filter(content_object__in=shared.objects.editable_by(who))

    def editable_by(self, who: Who) -> Self:
        """Keep those that ``who`` may withdraw: the same."""
        return self.visible_to(who)
