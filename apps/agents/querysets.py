"""Reads of agents."""

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models

from apps.workspaces.models import User, Workspace

if TYPE_CHECKING:
    from apps.agents.models import Agent


class AgentQuerySet(models.QuerySet["Agent"]):
    """Reads of agents."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep agents of the workspaces that ``user`` belongs to."""
        return self.filter(workspace__in=Workspace.objects.visible_to(user))

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep agents of the workspaces that ``user`` owns or administers."""
        return self.filter(workspace__in=Workspace.objects.editable_by(user))
