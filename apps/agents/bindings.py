"""Before the graph: who asks whom, what they may read, which models answer.

Everything is read in one go. The result holds no rows but the asker, whose doors the search asks
again at each call.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import psycopg
from django.db import DatabaseError
from django.db.models import Model
from django.utils import timezone

from apps.agents.context import (
    AgentProfile,
    Base,
    Budget,
    Decision,
    StoredResult,
    Switches,
    TurnContext,
    TurnRecord,
)
from apps.agents.languages import language_of
from apps.agents.messages import estimated_tokens
from apps.agents.models import Agent, ToolResultRef
from apps.agents.notices import say
from apps.agents.services import default_agent, store_result
from apps.agents.tools import catalog
from apps.agents.turn import EventSink, TurnRequest
from apps.common.compiled import CompiledQuery
from apps.common.database import in_db
from apps.common.errors import NotFound, ServiceUnavailable
from apps.common.text import storable
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.retrieval import reading
from apps.knowledge.retrieval.passages import Passage, SearchResult
from apps.knowledge.retrieval.search import search
from apps.memory.recall import recall
from apps.memory.services import store_items
from apps.models import gateway
from apps.models.chat import ChatDelta, ChatReply, ChatRequest, ResolvedModel, Wire
from apps.models.decision import decide_intent
from apps.workspaces.models import User, Workspace

T = TypeVar("T")
Row = TypeVar("Row", bound=Model)

ORDER = ("name", "pk")  # of bases
HISTORY_SHARE = 0.5  # of the model's context window
PROMPT_SHARE = 0.85
CEILING = Budget(rounds=20, calls=100, wall_s=900)  # the most that an agent's configuration may say


@dataclass(frozen=True, slots=True)
class Bound:
    """What a turn stands on, read from rows in one go."""

    user: User
    workspace: Workspace
    agent_id: UUID
    agent: AgentProfile
    tools: tuple[str, ...]
    bases: tuple[Base, ...]
    background: tuple[str, ...]  # the asker's own memory that belongs to the question
    model: ResolvedModel
    fast: ResolvedModel
    limits: Mapping[str, Any]


PERSON = CompiledQuery(lambda user: User.objects.filter(pk=user, is_active=True))
WORKSPACE = CompiledQuery(
    lambda user, workspace: Workspace.objects.visible_to(User(pk=user)).filter(pk=workspace),
)
DEFAULT_AGENT = CompiledQuery(
    lambda user, workspace: Agent.objects.visible_to(User(pk=user)).filter(workspace=workspace, is_default=True),
)
NAMED_AGENT = CompiledQuery(
    lambda user, workspace, agent: Agent.objects.visible_to(User(pk=user)).filter(workspace=workspace, pk=agent),
)
READABLE = CompiledQuery(
    lambda user, workspace: KnowledgeBase.objects.visible_to(User(pk=user)).filter(workspace=workspace).order_by(*ORDER)
)
READABLE_OF_AGENT = CompiledQuery(
    lambda user, workspace, agent: (
        KnowledgeBase.objects.visible_to(User(pk=user))
        .filter(workspace=workspace, pk__in=Agent.objects.filter(pk=agent).values("knowledge_bases"))
        .order_by(*ORDER)
    )
)


def bind(request: TurnRequest) -> Bound:
    """Read the asker, the agent, the snapshot of bases and the models.

    The snapshot is: bases that the asker may read, of this workspace, that the agent is configured
    with, and among those the ones asked for. Configuration and choice only narrow.

    Raises:
        NotFound: the asker, the agent, or a base that was asked for is not theirs to use.
        ModelUnavailable: no model can answer.
    """
    ids = {"user": request.user_id, "workspace": request.workspace_id}
    user = _one(PERSON.rows(user=request.user_id))
    workspace = _one(WORKSPACE.rows(**ids))
    agent = _agent(request, workspace)
    chosen = None if agent.all_knowledge_bases else agent.pk
    readable = READABLE.rows(**ids) if chosen is None else READABLE_OF_AGENT.rows(**ids, agent=chosen)
    bases = {base.pk: Base(base.pk, base.name, base.description) for base in readable}
    asked = request.options.knowledge_bases
    if any(base_id not in bases for base_id in asked):
        raise NotFound
    settings = agent.configuration if isinstance(agent.configuration, dict) else {}
    limits = settings.get("budget")
    return Bound(
        user=user,
        workspace=workspace,
        agent_id=agent.pk,
        agent=AgentProfile(agent.name, agent.instructions, settings.get("temperature"), settings.get("max_tokens")),
        tools=tuple(name for name in agent.tools if isinstance(name, str)),
        bases=tuple(base for base in bases.values() if not asked or base.id in asked),
        background=tuple(recall(user=user, workspace_id=workspace.pk, question=request.question)),
        model=gateway.resolve("chat", workspace_id=workspace.pk, explicit=request.options.model or agent.model_id),
        fast=gateway.resolve("chat", workspace_id=workspace.pk, fast=True),
        limits=limits if isinstance(limits, dict) else {},
    )


def _one(rows: list[Row]) -> Row:
    if not rows:
        raise NotFound
    return rows[0]


def _agent(request: TurnRequest, workspace: Workspace) -> Agent:
    ids = {"user": request.user_id, "workspace": workspace.pk}
    if request.agent_id is not None:
        return _one(NAMED_AGENT.rows(**ids, agent=request.agent_id))
    found = DEFAULT_AGENT.rows(**ids)
    return found[0] if found else default_agent(workspace)


def context_for(
    request: TurnRequest,
    bound: Bound,
    *,
    events: EventSink,
    stop: asyncio.Event,
    rebuilt: list[Wire] | None,
    record: TurnRecord,
) -> TurnContext:
    """Give the nodes and tools their powers, each already bound to the asker and the snapshot."""
    ids = tuple(base.id for base in bound.bases)
    inside = frozenset(ids)
    user = bound.user
    language = request.options.language or language_of(request.question)
    # A switch says what works in this turn: no tool for the web or the graph exists yet.
    switches = Switches(knowledge=bool(ids), language=request.options.language)
    tools = catalog.usable(bound.tools, switches)

    async def find(query: str, top_k: int) -> SearchResult:
        return await _reached(search(user, query, knowledge_bases=ids, top_k=top_k))

    async def grep(pattern: str, limit: int) -> Sequence[Passage]:
        return await _reached(reading.grep_chunks(user, pattern, knowledge_bases=ids, limit=limit))

    async def read(
        *, chunk_ids: Sequence[UUID] = (), document_id: UUID | None = None, first: int = 0, count: int = 10
    ) -> Sequence[Passage]:
        if document_id is None:
            passages = await _reached(reading.list_chunks(user, chunk_ids=list(chunk_ids)))
        else:
            passages = await _reached(reading.list_chunks(user, document_id=document_id, first=first, count=count))
        return [passage for passage in passages if passage.knowledge_base_id in inside]

    async def info(*, document_ids: Sequence[UUID] = ()) -> Sequence[Mapping[str, Any]]:
        return await _reached(reading.document_info(user, document_ids=document_ids, knowledge_bases=ids))

    async def readable(document_ids: Collection[UUID]) -> frozenset[UUID]:
        return await _reached(reading.readable(user, document_ids))

    async def keep(*, tool: str, text: str, documents: Sequence[str], numbers: Sequence[int]) -> UUID:
        store = partial(
            store_result,
            workspace=bound.workspace,
            actor=user,
            conversation=request.conversation_id,
            turn=request.turn_id,
            tool=tool,
            text=text,
            documents=documents,
            numbers=numbers,
        )
        return (await _reached(in_db(store))).pk

    async def stored(reference: UUID) -> StoredResult | None:
        own = ToolResultRef.objects.visible_to(user).filter(conversation=request.conversation_id, pk=reference)
        row = await _reached(in_db(own.first))
        if row is None:
            return None
        shown = {UUID(one) for one in row.documents}
        if shown and not (await readable(shown)).issuperset(shown):
            return None
        of_this_turn = row.turn == request.turn_id
        return StoredResult(row.tool, row.text, tuple(row.documents), tuple(row.numbers), of_this_turn)

    def stream(chat: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        return gateway.stream_chat(bound.model, chat, stop=stop)

    async def ask_fast(chat: ChatRequest) -> ChatReply:
        reply = await gateway.chat(bound.fast, chat)
        record.usage += reply.usage
        return reply

    async def decide(question: str) -> Decision:
        return await decide_intent(question, model=bound.fast, has_knowledge=bool(ids))

    async def remember(texts: Sequence[str]) -> None:
        await _reached(in_db(partial(store_items, workspace=bound.workspace, texts=texts, actor=user)))

    def token(text: str) -> None:
        record.text.append(text)
        events.token(text)

    return TurnContext(
        turn_id=request.turn_id,
        number=request.number,
        question=storable(request.question),
        today=timezone.localdate(timezone=_zone(user)).isoformat(),
        agent=bound.agent,
        bases=bound.bases,
        switches=switches,
        tools=tools,
        schemas=tuple(catalog.schema(tool) for tool in tools.values()),
        budget=_budget(bound),
        rebuilt=rebuilt,
        rewrites=bound.fast.provider != "builtin",
        record=record,
        stop=stop,
        search=find,
        grep=grep,
        read=read,
        info=info,
        readable=readable,
        keep=keep,
        stored=stored,
        fast_window=bound.fast.context_window,
        stream=stream,
        ask_fast=ask_fast,
        decide=decide,
        size=estimated_tokens,
        remember=remember,
        background=bound.background,
        emit=events.emit,
        token=token,
        say=partial(say, language),
    )


async def _reached(work: Awaitable[T]) -> T:
    """Turn a database that does not answer into an error that may pass."""
    try:
        return await work
    except (psycopg.OperationalError, psycopg.InterfaceError, DatabaseError) as error:
        raise ServiceUnavailable(service="database") from error


def _budget(bound: Bound) -> Budget:
    """Return the agent's budget: its own numbers where it has them, within the model's window."""
    window = bound.model.context_window
    most = Budget(prompt_tokens=int(window * PROMPT_SHARE), history_tokens=int(window * HISTORY_SHARE))
    own = {
        name: bound.limits[name]
        for name in ("rounds", "calls", "wall_s")
        if isinstance(bound.limits.get(name), int | float) and 0 < bound.limits[name] <= getattr(CEILING, name)
    }
    return replace(most, **own)


def _zone(user: User) -> ZoneInfo | None:
    try:
        return ZoneInfo(user.time_zone) if user.time_zone else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
