"""Before the graph: who asks whom, what they may read, which models answer.

Everything is read in one go. The result holds no rows but the asker, whose doors the search asks
again at each call (``powers``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model

from apps.agents.context import AgentProfile, Base
from apps.agents.models import Agent
from apps.agents.services import default_agent
from apps.agents.turn import TurnRequest
from apps.common.compiled import CompiledQuery
from apps.common.errors import NotFound
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.retrieval.filters import Filters
from apps.memory.models import ConversationNote
from apps.memory.recall import recall
from apps.models import gateway
from apps.models.chat import ResolvedModel
from apps.workspaces.doors import DoorQuery
from apps.workspaces.models import User, Workspace
from apps.workspaces.principals import Principal

Row = TypeVar("Row", bound=Model)

ORDER = ("name", "pk")  # of bases


@dataclass(frozen=True, slots=True)
class Bound:
    """What a turn stands on, read from rows in one go."""

    asker: Principal
    user: User | None  # None: a widget's visitor
    workspace: Workspace
    agent_id: UUID
    agent: AgentProfile
    tools: tuple[str, ...]
    bases: tuple[Base, ...]
    background: tuple[str, ...]  # the asker's own memory that belongs to the question
    note: str
    model: ResolvedModel
    fast: ResolvedModel
    limits: Mapping[str, Any]
    filters: Filters  # which documents of its bases the agent looks at


PERSON = CompiledQuery(lambda user: User.objects.filter(pk=user, is_active=True))
WORKSPACE = DoorQuery[Workspace](lambda who, workspace: Workspace.objects.visible_to(who).filter(pk=workspace))
DEFAULT_AGENT = DoorQuery[Agent](
    lambda who, workspace: Agent.objects.visible_to(who).filter(workspace=workspace, is_default=True)
)
NAMED_AGENT = DoorQuery[Agent](
    lambda who, workspace, agent: Agent.objects.visible_to(who).filter(workspace=workspace, pk=agent)
)
READABLE = DoorQuery[KnowledgeBase](
    lambda who, workspace: KnowledgeBase.objects.visible_to(who).filter(workspace=workspace).order_by(*ORDER)
)
READABLE_OF_AGENT = DoorQuery[KnowledgeBase](
    lambda who, workspace, agent: (
        KnowledgeBase.objects.visible_to(who)
        .filter(workspace=workspace, pk__in=Agent.objects.filter(pk=agent).values("knowledge_bases"))
        .order_by(*ORDER)
    )
)
NOTE = DoorQuery[ConversationNote](
    lambda who, conversation: ConversationNote.objects.visible_to(who).filter(conversation=conversation)
)


def bind(request: TurnRequest) -> Bound:
    """Read the asker, the agent, the snapshot of bases and the models.

    The snapshot is: bases that the asker may read, of this workspace, that the agent is configured
    with, and among those the ones asked for. Configuration and choice only narrow.

    Raises:
        NotFound: the asker, the agent, or a base that was asked for is not theirs to use.
        ModelUnavailable: no model can answer.
    """
    asker, ids = request.asker, {"workspace": request.workspace_id}
    user = _person(asker)
    workspace = _one(WORKSPACE.rows(asker, **ids))
    agent = _agent(request, workspace)
    chosen = None if agent.all_knowledge_bases else agent.pk
    readable = READABLE.rows(asker, **ids) if chosen is None else READABLE_OF_AGENT.rows(asker, **ids, agent=chosen)
    bases = {base.pk: Base(base.pk, base.name, base.description) for base in readable}
    asked = request.options.knowledge_bases
    if any(base_id not in bases for base_id in asked):
        raise NotFound
    settings = agent.configuration if isinstance(agent.configuration, dict) else {}
    limits = settings.get("budget")
    return Bound(
        asker=asker,
        user=user,
        workspace=workspace,
        agent_id=agent.pk,
        agent=AgentProfile(
            agent.name,
            agent.instructions,
            settings.get("temperature"),
            settings.get("max_tokens"),
            settings.get("thinking"),
            agent.memory,
            agent.language or None,
        ),
        tools=tuple(name for name in agent.tools if isinstance(name, str)),
        bases=tuple(base for base in bases.values() if not asked or base.id in asked),
        background=tuple(
            recall(user=user, workspace_id=workspace.pk, question=request.question) if user and agent.memory else ()
        ),
        note=next((row.text for row in NOTE.rows(asker, conversation=request.conversation_id)), ""),
        model=gateway.resolve("chat", workspace_id=workspace.pk, explicit=request.options.model or agent.model_id),
        fast=gateway.resolve("chat", workspace_id=workspace.pk, fast=True),
        limits=limits if isinstance(limits, dict) else {},
        filters=Filters.of(settings.get("filters") or {}),
    )


def _person(asker: Principal) -> User | None:
    """Return who asks, as a row that stands for nothing more than they came with; a widget's visitor has none."""
    if asker.user_id is None:
        return None
    user = _one(PERSON.rows(user=asker.user_id))
    user.acts_as = asker
    return user


def _one(rows: list[Row]) -> Row:
    if not rows:
        raise NotFound
    return rows[0]


def _agent(request: TurnRequest, workspace: Workspace) -> Agent:
    if request.agent_id is not None:
        return _one(NAMED_AGENT.rows(request.asker, workspace=workspace.pk, agent=request.agent_id))
    found = DEFAULT_AGENT.rows(request.asker, workspace=workspace.pk)
    if not found:
        default_agent(workspace)  # made at the first question; the door decides all the same
        found = DEFAULT_AGENT.rows(request.asker, workspace=workspace.pk)
    return _one(found)
