"""What a turn's nodes and tools can do, each power already bound to the asker and the turn's snapshot."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
import psycopg
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from psycopg.rows import DictRow

from apps.agents import services
from apps.agents.attached import Attached
from apps.agents.bindings import NOTE, READ_AHEAD, Bound, note_in
from apps.agents.context import Budget, Decision, Note, StoredResult, Switches, TurnContext, TurnRecord
from apps.agents.context_layout import task
from apps.agents.handoff import Handoff
from apps.agents.languages import language_of
from apps.agents.messages import estimated_tokens
from apps.agents.models import ConversationHandoff, ToolResultRef
from apps.agents.notices import say
from apps.agents.prompts import identity, prompt
from apps.agents.tools import catalog
from apps.agents.turn import Attachment, EventSink, TurnRequest
from apps.agents.web import providers
from apps.agents.web.pages import read_page
from apps.common.database import in_db, prepared
from apps.common.errors import ServiceUnavailable
from apps.common.text import storable
from apps.knowledge.retrieval import reading
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.passages import Passage, SearchResult
from apps.knowledge.retrieval.profiles import DEFAULT
from apps.knowledge.retrieval.search import search
from apps.memory.errors import MemoryOff
from apps.memory.services import count_citations, store_items, store_note
from apps.models import gateway
from apps.models.chat import ChatDelta, ChatReply, ChatRequest, Wire
from apps.models.decision import decide_intent
from apps.models.tokens import estimate
from apps.workspaces.doors import DoorQuery
from apps.workspaces.models import User

T = TypeVar("T")

PROMPT_SHARE = 0.85  # of the model's context window
CEILING = Budget(rounds=20, calls=100, wall_s=900, tokens=5_000_000)  # the most that an agent's configuration may say


HANDOFFS = DoorQuery[ConversationHandoff](
    lambda who, conversation: ConversationHandoff.objects.visible_to(who).filter(conversation=conversation)
)


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
    asker, user = bound.asker, bound.user
    narrow = (bound.filters,)
    chosen = request.options.language or bound.agent.language
    language = chosen or language_of(request.question)
    # A switch says what works in this turn: no tool for the graph exists yet.
    web = request.options.web and providers.is_on() and catalog.reaches_web(bound.tools)
    attached = Attached(request.attachments, number=request.number)
    switches = Switches(knowledge=bool(ids or attached.documents), web=web, language=chosen)
    tools = catalog.usable(bound.tools, switches)

    async def find(query: str, top_k: int | None, *filters: Filters) -> SearchResult:
        own = await attached.search(query, top_k or DEFAULT.top_k)
        if own and (record.scoped or not ids):
            return SearchResult(tuple(own))
        found = await _reached(search(asker, query, knowledge_bases=ids, top_k=top_k, filters=(*narrow, *filters)))
        most = top_k or max(DEFAULT.top_k, len(found.passages))
        beside = own[: max(1, most // 2)]
        return replace(found, passages=(*beside, *found.passages)[:most]) if own else found

    async def grep(pattern: str, limit: int) -> Sequence[Passage]:
        own = await attached.grep(pattern, limit)
        if record.scoped or not ids:
            return own
        found = await _reached(reading.grep_chunks(asker, pattern, knowledge_bases=ids, limit=limit, filters=narrow))
        return [*own, *found][:limit]

    async def read(
        *, chunk_ids: Sequence[UUID] = (), document_id: UUID | None = None, first: int = 0, count: int = 10
    ) -> Sequence[Passage]:
        own = await attached.read(chunk_ids=chunk_ids, document_id=document_id, first=first, count=count)
        if own and (document_id is not None or len(own) == len(chunk_ids)):
            return own
        if document_id is None:
            found = reading.list_chunks(asker, chunk_ids=list(chunk_ids), filters=narrow)
        else:
            found = reading.list_chunks(asker, document_id=document_id, first=first, count=count, filters=narrow)
        passages = await _reached(found)
        return [*own, *(passage for passage in passages if passage.knowledge_base_id in inside)]

    async def info(*, document_ids: Sequence[UUID] = ()) -> Sequence[Mapping[str, Any]]:
        own = attached.info(document_ids)
        if own and set(document_ids) and attached.ids().issuperset(document_ids):
            return own
        found = reading.document_info(asker, document_ids=document_ids, knowledge_bases=ids, filters=narrow)
        return [*own, *await _reached(found)]

    async def readable(document_ids: Collection[UUID]) -> frozenset[UUID]:
        own = attached.ids() & set(document_ids)
        foreign = set(document_ids) - own
        return own | (await _reached(reading.readable(asker, foreign)) if foreign else frozenset())

    async def keep(*, tool: str, text: str, documents: Sequence[str], numbers: Sequence[int]) -> UUID:
        store = partial(
            services.store_result,
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
        own = ToolResultRef.objects.visible_to(asker).filter(conversation=request.conversation_id, pk=reference)
        row = await _reached(in_db(own.first))
        if row is None:
            return None
        shown = {UUID(one) for one in row.documents} - attached.ids()
        if shown:
            there = await _reached(reading.readable(asker, shown, knowledge_bases=ids, filters=narrow))
            if not there.issuperset(shown):
                return None  # no longer theirs, or not of what this turn looks at
        of_this_turn = row.turn == request.turn_id
        return StoredResult(row.tool, row.text, tuple(row.documents), tuple(row.numbers), of_this_turn)

    def stream(chat: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        return gateway.stream_chat(bound.model, chat, stop=stop)

    async def ask_fast(chat: ChatRequest) -> ChatReply:
        reply = await gateway.chat(bound.fast, chat)
        record.usage += reply.usage
        return reply

    async def decide(question: str) -> Decision:
        kinds = {one.kind for one in attached.new}
        decision = await decide_intent(
            question,
            model=bound.fast,
            has_knowledge=bool(ids),
            images="image" in kinds,
            attachments="document" in kinds,
        )
        record.usage += decision.usage
        return decision

    async def describe(image: Attachment) -> str:
        vision = await in_db(partial(gateway.resolve, "vision", workspace_id=bound.workspace.pk))
        content = await image.content()
        return await gateway.describe(vision, content, media_type=image.media_type, prompt=prompt("describe_image"))

    async def remember(texts: Sequence[str]) -> None:
        if user is None or not bound.agent.memory:
            raise MemoryOff
        await _reached(in_db(partial(store_items, workspace=bound.workspace, texts=texts, actor=user)))

    async def count(documents: Collection[UUID]) -> None:
        if user is not None and bound.agent.memory:
            own = partial(count_citations, workspace=bound.workspace, actor=user)
            await _reached(in_db(partial(own, documents=documents)))

    async def read_note() -> Note:
        async def now() -> list[DictRow]:
            async with prepared() as connection:
                note = NOTE.statement(asker, conversation=request.conversation_id)
                return await (await connection.execute(*note)).fetchall()

        return note_in(await _reached(now()))

    async def keep_note(note: Note) -> None:
        own = partial(store_note, workspace=bound.workspace, conversation=request.conversation_id, actor=user)
        await _reached(in_db(partial(own, text=note.text, documents=map(UUID, note.documents))))

    async def store_handoff(handoff: Handoff) -> bool:
        store = partial(
            services.store_handoff,
            workspace=bound.workspace,
            actor=user,
            conversation=request.conversation_id,
            handoff=handoff,
        )
        return await _reached(in_db(store))

    ahead = [bound.handoffs]

    async def handoff_of(answers: Sequence[UUID]) -> Handoff:
        if ahead:  # later on others may be there
            rows = ahead.pop()
            known = next((row for row in rows if row["summary_upto_message_id"] in answers), None)
            if known is not None or len(rows) < READ_AHEAD:
                return _handoff(known)
        sql, parameters = HANDOFFS.statement(asker, conversation=request.conversation_id)
        newest = f"SELECT * FROM ({sql}) h WHERE summary_upto_message_id = ANY(%s) ORDER BY turns DESC LIMIT 1"  # noqa: S608 (the door's own SQL)

        async def first() -> DictRow | None:
            async with prepared() as connection:
                return await (await connection.execute(newest, (*parameters, list(answers)))).fetchone()

        return _handoff(await _reached(first()))

    def token(text: str) -> None:
        record.text.append(text)
        events.token(text)

    schemas = tuple(catalog.schema(tool) for tool in tools.values())
    return TurnContext(
        turn_id=request.turn_id,
        conversation_id=request.conversation_id,
        number=request.number,
        question=storable(request.question),
        today=timezone.localdate(timezone=zone_of(user)).isoformat(),
        agent=bound.agent,
        bases=bound.bases,
        switches=switches,
        tools=tools,
        schemas=schemas,
        budget=_budget(bound),
        rebuilt=rebuilt,
        rewrites=bound.fast.provider != "builtin",
        record=record,
        stop=stop,
        attached=attached.new,
        describe=describe,
        search=find,
        grep=grep,
        read=read,
        info=info,
        readable=readable,
        search_web=providers.search_web,
        read_page=read_page,
        keep=keep,
        stored=stored,
        fast_window=bound.fast.context_window,
        stream=stream,
        ask_fast=ask_fast,
        decide=decide,
        size=estimated_tokens,
        window=bound.model.context_window,
        keep_turns=settings.STM_KEEP_TURNS,
        fixed_tokens=_tokens_of(orjson.dumps(schemas).decode() + identity(bound.agent) + task(switches)),
        remember=remember,
        count_citations=count,
        background=bound.background,
        note=bound.note,
        read_note=read_note,
        store_note=keep_note,
        store_handoff=store_handoff,
        handoff_of=handoff_of,
        emit=events.emit,
        token=token,
        say=partial(say, language),
        reasoning_replay=bound.model.reasoning_replay,
    )


def _handoff(row: DictRow | None) -> Handoff:
    return Handoff.from_json(row["summary_upto_message_id"], row["turns"], row["parts"]) if row else Handoff()


@lru_cache(200)
def _tokens_of(text: str) -> int:
    """Return an estimate that is made anew for other tools, instructions or switches alone."""
    return estimate(text)


async def _reached(work: Awaitable[T]) -> T:
    """Turn a database that does not answer into an error that may pass."""
    try:
        return await work
    except (psycopg.OperationalError, psycopg.InterfaceError, DatabaseError) as error:
        raise ServiceUnavailable(service="database") from error


def _budget(bound: Bound) -> Budget:
    """Return the agent's budget: its own numbers where it has them, within the model's window."""
    window = bound.model.context_window
    most = Budget(prompt_tokens=int(window * PROMPT_SHARE))
    own = {
        name: bound.limits[name]
        for name in ("rounds", "calls", "wall_s", "tokens")
        if isinstance(bound.limits.get(name), int | float) and 0 < bound.limits[name] <= getattr(CEILING, name)
    }
    return replace(most, **own)


def zone_of(user: User | None) -> ZoneInfo | None:
    """Return the time zone that a person chose, None where they chose none that is known."""
    try:
        return ZoneInfo(user.time_zone) if user and user.time_zone else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
