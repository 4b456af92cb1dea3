"""Reads of agents."""

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models

from apps.workspaces.models import User, Workspace

if TYPE_CHECKING:
    from apps.agents.models import Agent, ConversationHandoff, ToolResultRef


class AgentQuerySet(models.QuerySet["Agent"]):
    """Reads of agents."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep agents of the workspaces that ``user`` belongs to."""
        return self.filter(workspace__in=Workspace.objects.visible_to(user))

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep agents of the workspaces that ``user`` owns or administers."""
        return self.filter(workspace__in=Workspace.objects.editable_by(user))


class ToolResultRefQuerySet(models.QuerySet["ToolResultRef"]):
    """Reads of stored tool results: each belongs to the person whose question made it."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep the user's own, in workspaces that they still belong to."""
        return self.filter(user_id=user.pk, workspace__in=Workspace.objects.visible_to(user))

    editable_by = visible_to


class HandoffQuerySet(models.QuerySet["ConversationHandoff"]):
    """Reads of handoffs: each belongs to the person whose conversation it is of."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep those of the user's own conversations, in workspaces that they still belong to."""
        return self.filter(user_id=user.pk, workspace__in=Workspace.objects.visible_to(user))

    editable_by = visible_to
