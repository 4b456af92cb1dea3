"""Reads of agents."""

from typing import TYPE_CHECKING, Self

from django.db import models

from apps.workspaces import rights
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Who

if TYPE_CHECKING:
    from apps.agents.models import Agent, AgentVersion, ConversationHandoff, ToolResultRef


class AgentQuerySet(models.QuerySet["Agent"]):
    """Reads of agents."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep agents that ``who`` may ask (``rights.read``)."""
        from apps.agents.models import AgentShare

        return self.filter(rights.read(who, "agents:read", AgentShare))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep agents that ``who`` may change, delete and share."""
        from apps.agents.models import AgentShare

        return self.filter(rights.manage(who, "agents:write", AgentShare))


class AgentVersionQuerySet(models.QuerySet["AgentVersion"]):
    """Reads of an agent's versions: for those who may change it."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep versions of agents that ``who`` may change: they hold instructions."""
        from apps.agents.models import Agent

        return self.filter(agent__in=Agent.objects.editable_by(who))

    def editable_by(self, who: Who) -> Self:
        """Keep what ``who`` may go back to: the same."""
        return self.visible_to(who)


class ToolResultRefQuerySet(models.QuerySet["ToolResultRef"]):
    """Reads of stored tool results: each belongs to the person whose question made it."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep one's own, in workspaces that one still belongs to."""
        return self.filter(rights.own(who, "conversations:read"))

    editable_by = visible_to


class HandoffQuerySet(models.QuerySet["ConversationHandoff"]):
    """Reads of handoffs: each belongs to the person whose conversation it is of."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep those of one's own conversations, in workspaces that one still belongs to."""
        return self.filter(rights.own(who, "conversations:read"))

    editable_by = visible_to
