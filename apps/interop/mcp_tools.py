"""What other assistants may do through the MCP server: search, read, ask, with their caller's rights.

Each tool is a function of the caller and its checked arguments; it returns the text that a model reads and
the same as plain values for programs.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field

from apps.agents.models import Agent
from apps.common.database import in_db
from apps.common.errors import NotFound
from apps.conversations import frames, services, watching
from apps.conversations.models import Conversation
from apps.interop.completions import Answer
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.querysets import KnowledgeBaseQuerySet
from apps.knowledge.retrieval import reading
from apps.knowledge.retrieval.passages import Passage
from apps.knowledge.retrieval.search import search
from apps.workspaces import audit
from apps.workspaces.models import User, Workspace

MOST_BASES = 100  # that are listed


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose rights count, and in which workspace."""

    user: User
    workspace_id: UUID


class Found(NamedTuple):
    """What a tool found: for a model to read, and for programs."""

    text: str
    values: dict[str, Any]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Nothing(_Arguments):
    """No arguments."""


class Search(_Arguments):
    """A search."""

    query: str = Field(min_length=1, max_length=4000, description="A question, or words to look for.")
    knowledge_bases: list[UUID] = Field(default=[], max_length=100, description="Where to look; empty: everywhere.")
    top_k: int | None = Field(
        default=None, ge=1, le=30, description="How many passages; null: as many as the knowledge bases are set to."
    )


class Read(_Arguments):
    """A run of passages of one document."""

    document_id: UUID = Field(description="The document, from a search.")
    first: int = Field(default=0, ge=0, le=2**31 - 1, description="The first passage, from 0, in reading order.")
    count: int = Field(default=10, ge=1, le=50, description="How many passages.")


class Ask(_Arguments):
    """A question."""

    question: str = Field(min_length=1, max_length=frames.MAX_QUESTION, description="The question.")
    agent: str = Field(default="", max_length=200, description="The agent's name; empty: the workspace's default.")
    knowledge_bases: list[UUID] = Field(default=[], max_length=100, description="Where to look; empty: everywhere.")
    conversation: UUID | None = Field(default=None, description="To go on with an earlier conversation.")


async def list_knowledge_bases(caller: Caller, arguments: Nothing) -> Found:
    """List the knowledge bases that can be searched, with what is in them."""
    bases = await in_db(_bases, caller)
    lines = [f"{base['name']} ({base['id']}): {base['description'] or 'no description'}" for base in bases]
    return Found("\n".join(lines) or "There is no knowledge base that you may read.", {"knowledge_bases": bases})


async def search_knowledge(caller: Caller, arguments: Search) -> Found:
    """Search the team's documents; returns whole passages, the best first, each with its document and page."""
    bases = await in_db(_searched, caller, arguments.knowledge_bases)
    if set(arguments.knowledge_bases) - set(bases):
        raise NotFound
    result = await search(caller.user, arguments.query, knowledge_bases=bases, top_k=arguments.top_k)
    documents = {passage.document_id for passage in result.passages}
    await in_db(
        partial(audit.record, "bases.searched", who=caller.user, workspace_id=caller.workspace_id,
                documents=sorted(map(str, documents)))
    )  # fmt: skip
    text = _passages(result.passages) or f"Nothing was found for {arguments.query!r} ({result.empty_reason})."
    if result.degraded:
        text += f"\n\n(Without: {', '.join(result.degraded)})"
    return Found(text, {"passages": [_values(passage) for passage in result.passages]})


async def read_document(caller: Caller, arguments: Read) -> Found:
    """Read passages of one document, in order, to see what stands around a passage that was found."""
    given = {"document_id": arguments.document_id, "first": arguments.first, "count": arguments.count}
    if arguments.document_id not in await reading.readable(caller.user, [arguments.document_id]):
        raise NotFound
    await in_db(_opened, caller, arguments.document_id)
    passages = await reading.list_chunks(caller.user, **given)  # type: ignore[arg-type]
    text = _passages(passages) or "The document has no passage there."
    return Found(text, {"passages": [_values(passage) for passage in passages]})


def _opened(caller: Caller, document_id: UUID) -> None:
    documents = Document.objects.visible_to(caller.user).select_related("knowledge_base", "folder")
    audit.opened_all(documents.filter(pk=document_id), who=caller.user)


async def ask(caller: Caller, arguments: Ask) -> Found:
    """Ask an agent; returns an answer whose facts carry markers [[cN]], with the numbered sources behind them."""
    conversation = await in_db(_conversation, caller, arguments)
    question = frames.Ask(
        text=arguments.question, client_id=uuid4().hex, knowledge_bases=list(arguments.knowledge_bases)
    )
    turn = await services.start_turn(conversation, question, actor=caller.user)
    slug = await in_db(_slug, caller)
    answer = Answer(turn.pk, conversation.pk, "", slug)
    over = False
    try:
        async with aclosing(watching.watch(turn.pk, who=caller.user)) as events:
            async for event in events:
                answer.take(event)
        over = True
    finally:
        if not over:  # the caller went away, and nobody else is reading
            await services.stop_turn(conversation, turn.pk)
    answer.require_success()
    cited = sorted({note["url_citation"]["n"] for note in answer.annotations()})
    sources = [answer.sources[n] for n in cited]
    lines = [f"[[c{one['n']}]] {one['document'] or one['url']}{_page(one['page'])}" for one in sources]
    text = answer.text + ("\n\nSources:\n" + "\n".join(lines) if lines else "")
    values = {"answer": answer.text, "sources": sources, "conversation": str(conversation.pk), "turn": str(turn.pk)}
    return Found(text, values)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what it takes, what it needs, what it does."""

    arguments: type[_Arguments]
    scope: str
    run: Callable[[Caller, Any], Awaitable[Found]]


TOOLS: Mapping[str, Tool] = {
    "list_knowledge_bases": Tool(Nothing, "knowledge:read", list_knowledge_bases),
    "search": Tool(Search, "knowledge:read", search_knowledge),
    "read": Tool(Read, "knowledge:read", read_document),
    "ask": Tool(Ask, "conversations:write", ask),
}


def _readable(caller: Caller) -> KnowledgeBaseQuerySet:
    return KnowledgeBase.objects.visible_to(caller.user).filter(workspace=caller.workspace_id).order_by("name")


def _searched(caller: Caller, wanted: Sequence[UUID]) -> list[UUID]:
    """Return those of the wanted bases that the caller may read; all that they may read where none is named."""
    found = _readable(caller)
    return list((found.filter(pk__in=wanted) if wanted else found).values_list("pk", flat=True))


def _bases(caller: Caller) -> list[dict[str, Any]]:
    return [
        {"id": str(row["id"]), "name": row["name"], "description": row["description"]}
        for row in _readable(caller).values("id", "name", "description")[:MOST_BASES]
    ]


def _slug(caller: Caller) -> str:
    return Workspace.objects.visible_to(caller.user).get(pk=caller.workspace_id).slug


def _conversation(caller: Caller, arguments: Ask) -> Conversation:
    """Return the conversation to ask in, a new one if none is named. Raises NotFound."""
    if arguments.conversation:
        mine = Conversation.objects.editable_by(caller.user).filter(workspace=caller.workspace_id)
        if (found := mine.filter(pk=arguments.conversation).first()) is None:
            raise NotFound
        return found
    workspace = Workspace.objects.visible_to(caller.user).filter(pk=caller.workspace_id).first()
    if workspace is None:
        raise NotFound
    agent = None
    if arguments.agent:
        agent = Agent.objects.visible_to(caller.user).filter(workspace=workspace, name=arguments.agent).first()
        if agent is None:
            raise NotFound
    return services.start_conversation(workspace=workspace, actor=caller.user, agent=agent)


def _passages(passages: Any) -> str:
    return "\n\n".join(
        f"{passage.document}{_page(passage.page)} · {passage.heading}\n(document {passage.document_id})\n{passage.text}"
        for passage in passages
    )


def _values(passage: Passage) -> dict[str, Any]:
    return {
        "chunk_id": str(passage.chunk_id),
        "document_id": str(passage.document_id),
        "document": passage.document,
        "page": passage.page,
        "heading": passage.heading,
        "text": passage.text,
        "score": passage.score,
    }


def _page(page: int | None) -> str:
    return f", page {page}" if page else ""
