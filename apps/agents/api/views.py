"""/agents/."""

from typing import ClassVar
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents.models import Agent
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, within


class AgentOut(serializers.ModelSerializer[Agent]):
    """An agent: instructions, tools and knowledge."""

    class Meta:
        model = Agent
        fields: ClassVar = ["id", "workspace", "name", "tools", "all_knowledge_bases", "is_default", "created_at"]
        read_only_fields = fields


class Agents(ApiView):
    """Agents: how a team's questions are answered."""

    operations = {"GET": Operation(output=AgentOut, query=InWorkspace, many=True, scope="agents:read")}

    def rows(self) -> QuerySet[Agent]:
        return Agent.objects.visible_to(self.who)

    def on_get(self, request: Request) -> Response:
        """List the agents that you may ask."""
        return self.page(self.rows().filter(**within(self)))


class OneAgent(ApiView):
    """An agent."""

    operations = {"GET": Operation(output=AgentOut, scope="agents:read")}

    def on_get(self, request: Request, agent_id: UUID) -> Response:
        """Return an agent."""
        return self.answer(self.row(agent_id, Agent.objects.visible_to(self.who)))
