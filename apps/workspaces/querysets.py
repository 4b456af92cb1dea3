"""Reads of workspaces and memberships; the doors that every other app's doors rest on."""

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Exists, OuterRef

if TYPE_CHECKING:
    from apps.workspaces.models import Membership, User, Workspace


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    """Reads of workspaces."""

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        """Keep workspaces that ``user`` is a member of. Staff get no shortcut."""
        return self.filter(self._membership(user)) if user.is_authenticated else self.none()

    def editable_by(self, user: "User | AnonymousUser") -> Self:
        """Keep workspaces that ``user`` owns or administers."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(self._membership(user, role__in=["owner", "admin"]))

    @staticmethod
    def _membership(user: "User", **conditions: object) -> Exists:
        from apps.workspaces.models import Membership

        mine = Membership.objects.filter(workspace=OuterRef("pk"), user_id=user.pk, user__is_active=True)
        return Exists(mine.filter(**conditions))


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Reads of memberships."""

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        """Keep memberships of workspaces that ``user`` belongs to."""
        from apps.workspaces.models import Workspace

        return self.filter(workspace__in=Workspace.objects.visible_to(user))

    def editable_by(self, user: "User | AnonymousUser") -> Self:
        """Keep memberships of workspaces that ``user`` owns or administers."""
        from apps.workspaces.models import Workspace

        return self.filter(workspace__in=Workspace.objects.editable_by(user))
