"""/agents/."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents import editing
from apps.agents.forms import LANGUAGES, QUESTION, QUESTIONS, TOOLS
from apps.agents.models import Agent
from apps.knowledge.models import KnowledgeBase
from apps.rest.fields import JsonObject
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, entered, within
from apps.workspaces.api.shares import OneShareOfRow, SharesOfRow

READ, WRITE = "agents:read", "agents:write"


class AgentOut(serializers.ModelSerializer[Agent]):
    """An agent: instructions, tools and knowledge. `knowledge_bases` are those that you may read.

    Its instructions and settings are shown to those who may change it.
    """

    tools = serializers.ListField(child=serializers.CharField())
    opening_questions = serializers.ListField(child=serializers.CharField())
    instructions = serializers.SerializerMethodField()
    configuration = serializers.SerializerMethodField()
    editable = serializers.BooleanField(help_text="Whether you may change it.")

    class Meta:
        model = Agent
        fields: ClassVar = [
            "id", "workspace", "name", "instructions", "tools", "all_knowledge_bases", "knowledge_bases", "model",
            "configuration", "memory", "language", "opening_questions", "restricted", "is_default", "created_at",
            "editable",
        ]  # fmt: skip
        read_only_fields = fields

    def get_instructions(self, agent: Any) -> str | None:
        """Return what the agent is told, to those who may change it."""
        return str(agent.instructions) if agent.editable else None

    def get_configuration(self, agent: Any) -> dict[str, Any] | None:
        """Return limits and filters, to those who may change them."""
        return agent.configuration if agent.editable else None


class AgentChange(serializers.Serializer[Any]):
    """What changes. Bases and a model that you may not use are left out."""

    name = serializers.CharField(max_length=100, required=False)
    instructions = serializers.CharField(max_length=20_000, required=False, allow_blank=True)
    tools = serializers.ListField(child=serializers.ChoiceField(choices=list(TOOLS)), max_length=50, required=False)
    all_knowledge_bases = serializers.BooleanField(required=False)
    knowledge_bases = serializers.ListField(child=serializers.UUIDField(), max_length=200, required=False)
    model = serializers.UUIDField(required=False, allow_null=True)
    configuration = JsonObject(required=False)
    memory = serializers.BooleanField(required=False)
    language = serializers.ChoiceField(choices=[code for code, _name in LANGUAGES], required=False)
    opening_questions = serializers.ListField(
        child=serializers.CharField(max_length=QUESTION), max_length=QUESTIONS, required=False
    )
    restricted = serializers.BooleanField(required=False)
    is_default = serializers.BooleanField(
        required=False, help_text="True: new questions of the workspace go to it; for those who run the workspace."
    )


class AgentIn(InWorkspace, AgentChange):
    """A new agent."""

    name = serializers.CharField(max_length=100)


class _OfAgents(ApiView):
    def rows(self) -> QuerySet[Agent]:
        mine = Agent.objects.editable_by(self.who).filter(pk=OuterRef("pk"))
        bases = Prefetch("knowledge_bases", KnowledgeBase.objects.visible_to(self.who))
        return Agent.objects.visible_to(self.who).annotate(editable=Exists(mine)).prefetch_related(bases)

    def editable(self, agent_id: UUID) -> Agent:
        """Return an agent that the caller may change. Raises NotFound."""
        found: Agent = self.row(agent_id, Agent.objects.editable_by(self.who).select_related("workspace"))
        return found


class Agents(_OfAgents):
    """Agents: how a team's questions are answered."""

    operations = {
        "GET": Operation(output=AgentOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=AgentIn, output=AgentOut, status=201, scope=WRITE),
    }

    def on_get(self, request: Request) -> Response:
        """List the agents that you may ask."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Make an agent."""
        given = self.taken()
        workspace, default = entered(self, given.pop("workspace", None)), given.pop("is_default", False)
        made = editing.create_agent(workspace=workspace, values=given, actor=self.who)
        if default:
            editing.make_default(agent=made, actor=self.who)
        return self.answer(self.row(made.pk))


class OneAgent(_OfAgents):
    """An agent."""

    operations = {
        "GET": Operation(output=AgentOut, scope=READ),
        "PATCH": Operation(input=AgentChange, output=AgentOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, agent_id: UUID) -> Response:
        """Return an agent."""
        return self.answer(self.row(agent_id))

    def on_patch(self, request: Request, agent_id: UUID) -> Response:
        """Change an agent; every change is a version that can be brought back."""
        agent, given = self.editable(agent_id), self.taken()
        default = given.pop("is_default", False)
        editing.save_agent(agent=agent, values=given, actor=self.who)
        if default:
            editing.make_default(agent=agent, actor=self.who)
        return self.answer(self.row(agent_id))

    def on_delete(self, request: Request, agent_id: UUID) -> Response:
        """Delete an agent; its conversations stay, and go on with the default one."""
        editing.delete_agent(agent=self.editable(agent_id), actor=self.who)
        return self.done()


class SharesOfAgent(SharesOfRow):
    """Who may ask or change an agent besides the owners and admins of its workspace."""

    operations = SharesOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Agent]:
        return Agent.objects.editable_by(self.who)


class OneShareOfAgent(OneShareOfRow):
    """A share of an agent."""

    operations = OneShareOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Agent]:
        return Agent.objects.editable_by(self.who)
