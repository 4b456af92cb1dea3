"""Before the graph: who asks whom, what they may read, which models answer.

Everything is read in one go. The result holds no rows but the asker, whose doors the search asks
again at each call (``powers``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from psycopg.rows import DictRow

from apps.agents.context import AgentProfile, Base, Note
from apps.agents.models import Agent, ConversationHandoff
from apps.agents.services import default_agent
from apps.agents.turn import TurnRequest
from apps.common.compiled import CompiledQuery, objects
from apps.common.database import in_db, read_together
from apps.common.errors import NotFound
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.retrieval.filters import Filters
from apps.memory.models import ConversationNote
from apps.memory.recall import recall
from apps.memory.recall import statements as memory_statements
from apps.models import gateway
from apps.models.chat import ResolvedModel
from apps.models.models import ModelConfig
from apps.workspaces.doors import DoorQuery, Statement
from apps.workspaces.models import User, Workspace
from apps.workspaces.principals import Principal, Who

ORDER = ("name", "pk")  # of bases
READ_AHEAD = 3  # newest ones of a conversation that are read ahead: one of them belongs, but on old branches


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
    note: Note
    model: ResolvedModel
    fast: ResolvedModel
    limits: Mapping[str, Any]
    filters: Filters  # which documents of its bases the agent looks at
    handoffs: tuple[DictRow, ...] = ()  # the conversation's newest, the longest first


PERSON = CompiledQuery(lambda user: User.objects.filter(pk=user, is_active=True))
WORKSPACE = DoorQuery[Workspace](lambda who, workspace: Workspace.objects.visible_to(who).filter(pk=workspace))
DEFAULT_AGENT = DoorQuery[Agent](
    lambda who, workspace: Agent.objects.visible_to(who).filter(workspace=workspace, is_default=True)
)
NAMED_AGENT = DoorQuery[Agent](
    lambda who, workspace, agent: Agent.objects.visible_to(who).filter(workspace=workspace, pk=agent)
)
# Which bases an agent is configured with is said beside each: what it may use is known only with its own row.
BASES_OF_DEFAULT = DoorQuery[KnowledgeBase](
    lambda who, workspace: _bases(who, workspace, Agent.objects.filter(workspace=workspace, is_default=True))
)
BASES_OF_AGENT = DoorQuery[KnowledgeBase](
    lambda who, workspace, agent: _bases(who, workspace, Agent.objects.filter(pk=agent))
)
NOTE = DoorQuery[ConversationNote](
    lambda who, conversation: ConversationNote.objects.visible_to(who).filter(conversation=conversation)
)
LAST_HANDOFFS = DoorQuery[ConversationHandoff](
    lambda who, conversation: (
        ConversationHandoff.objects.visible_to(who)
        .filter(conversation=conversation)
        .order_by("-turns")
        .values("summary_upto_message_id", "turns", "parts")[:READ_AHEAD]
    )
)


def _bases(who: Who, workspace: UUID, agent: QuerySet[Agent]) -> QuerySet[KnowledgeBase, Any]:
    chosen = Exists(agent.filter(knowledge_bases=OuterRef("pk")))
    readable = KnowledgeBase.objects.visible_to(who).filter(workspace=workspace)
    return readable.annotate(chosen=chosen).order_by(*ORDER).values("id", "name", "description", "chosen")


async def bind(request: TurnRequest) -> Bound:
    """Read the asker, the agent, the snapshot of bases and the models: one round trip, in most turns.

    The snapshot is: bases that the asker may read, of this workspace, that the agent is configured
    with, and among those the ones asked for. Configuration and choice only narrow.

    Raises:
        NotFound: the asker, the agent, or a base that was asked for is not theirs to use.
        ModelUnavailable: no model can answer.
    """
    asker, place = request.asker, request.workspace_id
    statements = _statements(request)
    found = dict(zip(statements, await read_together(list(statements.values())), strict=True))
    [workspace] = objects(Workspace, found["workspace"]) or _nobody()
    user = _person(asker, found.get("person", []))
    agent = await _agent(request, workspace, found["agent"])
    bases = {
        row["id"]: Base(row["id"], row["name"], row["description"])
        for row in found["bases"]
        if agent.all_knowledge_bases or row["chosen"]
    }
    asked = request.options.knowledge_bases
    if any(base_id not in bases for base_id in asked):
        raise NotFound
    settings = agent.configuration if isinstance(agent.configuration, dict) else {}
    limits = settings.get("budget")
    model, fast = await _models(request, agent, objects(ModelConfig, found["models"]))
    background: list[str] = []
    if user and agent.memory:
        remembered = (found[name] for name in ("off", "items", "consulted"))
        background = await recall(*remembered, who=asker, workspace_id=place, question=request.question)
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
        background=tuple(background),
        note=note_in(found["note"]),
        model=model,
        fast=fast,
        limits=limits if isinstance(limits, dict) else {},
        filters=Filters.of(settings.get("filters") or {}),
        handoffs=tuple(found["handoffs"]),
    )


def note_in(rows: list[DictRow]) -> Note:
    """Return a conversation's note, of the rows of ``NOTE``."""
    return next((Note(row["text"], frozenset(map(str, row["documents"]))) for row in rows), Note())


async def _models(
    request: TurnRequest, agent: Agent, defaults: list[ModelConfig]
) -> tuple[ResolvedModel, ResolvedModel]:
    """Return the model that answers and the fast one. A chosen model, and one that stands in, are rows of their own."""
    explicit = request.options.model or agent.model_id

    def chosen() -> tuple[ResolvedModel, ResolvedModel]:
        fast = gateway.default_of("chat", defaults, fast=True)
        if explicit is None:
            return gateway.default_of("chat", defaults), fast
        return gateway.resolve("chat", workspace_id=request.workspace_id, explicit=explicit), fast

    if explicit is None and not any(row.fallback_id for row in defaults):
        return chosen()
    return await in_db(chosen)


def _statements(request: TurnRequest) -> dict[str, Statement]:
    """Return all that is read, by name; a widget's visitor has neither a row nor a memory."""
    asker, place, agent = request.asker, request.workspace_id, request.agent_id
    statements: dict[str, Statement] = {
        "workspace": WORKSPACE.statement(asker, workspace=place),
        "agent": (
            NAMED_AGENT.statement(asker, workspace=place, agent=agent)
            if agent
            else DEFAULT_AGENT.statement(asker, workspace=place)
        ),
        "bases": (
            BASES_OF_AGENT.statement(asker, workspace=place, agent=agent)
            if agent
            else BASES_OF_DEFAULT.statement(asker, workspace=place)
        ),
        "note": NOTE.statement(asker, conversation=request.conversation_id),
        "handoffs": LAST_HANDOFFS.statement(asker, conversation=request.conversation_id),
        "models": gateway.defaults_statement("chat", place),
    }
    if asker.user_id is not None:
        statements["person"] = PERSON.statement(user=asker.user_id)
        statements |= zip(("off", "items", "consulted"), memory_statements(asker, place), strict=True)
    return statements


def _person(asker: Principal, rows: list[DictRow]) -> User | None:
    """Return who asks, as a row that stands for nothing more than they came with; a widget's visitor has none."""
    if asker.user_id is None:
        return None
    [user] = objects(User, rows) or _nobody()
    user.acts_as = asker
    return user


def _nobody() -> NoReturn:
    raise NotFound


async def _agent(request: TurnRequest, workspace: Workspace, rows: list[DictRow]) -> Agent:
    found = objects(Agent, rows)
    if not found and request.agent_id is None:
        await in_db(default_agent, workspace)  # made at the first question; the door decides all the same
        [rows] = await read_together([DEFAULT_AGENT.statement(request.asker, workspace=workspace.pk)])
        found = objects(Agent, rows)
    [agent] = found or _nobody()
    return agent
