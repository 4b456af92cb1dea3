"""What a turn's nodes and tools are given: powers already bound to the asker, and nothing else.

Nodes and tools import neither Django nor Channels: all they can do is here, bound by ``powers``
before the graph starts.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from uuid import UUID

from apps.agents.handoff import Handoff
from apps.agents.sources import SourceLedger
from apps.agents.turn import Attachment
from apps.agents.web.hits import WebHit, WebPage
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.passages import Passage, SearchResult
from apps.models.chat import ChatDelta, ChatReply, ChatRequest, Usage, Wire

if TYPE_CHECKING:
    from apps.agents.tools.catalog import Tool


@dataclass(frozen=True, slots=True)
class Switches:
    """What segment 2 of the prompt says, and what tools are cut by."""

    knowledge: bool
    web: bool = False
    graph: bool = False
    language: str | None = None


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """The agent's own part of the prompt and its call settings."""

    name: str
    instructions: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    thinking: bool | None = None  # None: what was chosen for the model
    memory: bool = True  # whether the asker's memory is read and written
    language: str | None = None  # of answers, where the asker chose none


@dataclass(frozen=True, slots=True)
class Base:
    """A knowledge base of the turn's snapshot."""

    id: UUID
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a turn may use before a final answer is forced. Times in seconds, sizes in tokens."""

    rounds: int = 8  # of tool calls, one after the other
    calls: int = 24
    repeats: int = 3  # identical calls answered from the turn's cache
    wall_s: float = 240.0
    tool_s: float = 45.0
    stale: int = 3  # rounds of calls that bring nothing new
    tokens: int = 800_000  # of all calls of models together
    prompt_tokens: int = 24_000


@runtime_checkable
class Decision(Protocol):
    """What a question wants, as ``apps.models.decision`` says it."""

    @property
    def label(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def method(self) -> str: ...


@dataclass(slots=True)
class TurnRecord:
    """What a turn has done so far; the only thing of a turn's context that changes."""

    sources: SourceLedger = field(default_factory=SourceLedger)
    text: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    results: dict[str, Any] = field(default_factory=dict)  # of tool calls, by name and arguments
    plan: list[dict[str, str]] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)  # of the web, that may be opened
    scoped: bool = False  # tools look into attached files alone
    # what the answer may stand on so far
    looked: int = 0  # lookups that ran
    queries: list[str] = field(default_factory=list)  # what was looked for
    failed: int = 0  # lookups that failed
    found: bool = False  # one of them found something
    excerpts: set[int] = field(default_factory=set)  # numbers shown in part
    read: set[int] = field(default_factory=set)  # numbers shown whole
    readings: int = 0  # times that passages were asked for by number
    stale: int = 0  # rounds in a row that brought nothing new
    room: int = 24_000  # tokens that results may still add to the prompt
    full: dict[str, str] = field(default_factory=dict)  # results that were put away, by call
    handoff: Handoff = field(default_factory=Handoff)  # of earlier turns; replaced when more are handed off
    note: str = ""  # what the conversation is about, where all that it was made from may still be read
    prompt_tokens: int = 0  # of the last request, as the vendor counted
    calls: int = 0
    repeats: int = 0
    rounds: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)  # of the main model: bytes, reused, break
    compacted: bool = False  # turns were handed off in this turn, because the prompt was full
    request_bytes: int = 0
    reused_bytes: int = 0
    unknown_citations: int = 0
    cut: bool = False  # the model reached its output limit
    stopped: bool = False
    began: float = field(default_factory=monotonic)

    def elapsed_s(self) -> float:
        """Return the seconds since the turn began."""
        return monotonic() - self.began


@dataclass(frozen=True, slots=True)
class Note:
    """What a conversation is about, and the ids of the documents that it was made from."""

    text: str = ""
    documents: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A tool's whole result as it was put away. ``numbers`` are its sources', where it is of this turn."""

    tool: str
    text: str
    documents: tuple[str, ...]
    numbers: tuple[int, ...]
    of_this_turn: bool


class KeepResult(Protocol):
    """Puts a tool's whole result away; returns the id by which it is found again."""

    async def __call__(self, *, tool: str, text: str, documents: Sequence[str], numbers: Sequence[int]) -> UUID: ...


class Search(Protocol):
    """Searches the turn's snapshot; ``filters`` narrow further. ``top_k`` None: as many as its bases' profile says."""

    async def __call__(self, query: str, top_k: int | None, *filters: Filters) -> SearchResult: ...


class ListChunks(Protocol):
    """Reads whole passages in document order, of the turn's snapshot only."""

    async def __call__(
        self,
        *,
        chunk_ids: Sequence[UUID] = (),
        document_id: UUID | None = None,
        first: int = 0,
        count: int = 10,
    ) -> Sequence[Passage]: ...


class DocumentInfo(Protocol):
    """Describes documents of the turn's snapshot, as plain JSON."""

    async def __call__(self, *, document_ids: Sequence[UUID] = ()) -> Sequence[Mapping[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class TurnContext:
    """Everything a node or a tool may use in this turn. Never stored, so it may hold clients."""

    turn_id: UUID
    conversation_id: UUID
    number: int
    question: str
    today: str
    agent: AgentProfile
    bases: tuple[Base, ...]
    switches: Switches
    tools: Mapping[str, "Tool"]
    schemas: tuple[Wire, ...]  # of ``tools``, in the order they are always sent
    budget: Budget
    rebuilt: list[Wire] | None  # earlier messages, where the checkpoint does not have them
    rewrites: bool  # whether a model can restore references
    record: TurnRecord
    stop: asyncio.Event
    attached: tuple[Attachment, ...]  # the files that came with this question
    describe: Callable[[Attachment], Awaitable[str]]  # what a model that sees says of an image
    # knowledge: scoped to the asker in SQL, at each call
    search: Search
    grep: Callable[[str, int], Awaitable[Sequence[Passage]]]
    read: ListChunks
    info: DocumentInfo
    readable: Callable[[Collection[UUID]], Awaitable[frozenset[UUID]]]  # which of some documents still are
    # the web
    search_web: Callable[[str, int], Awaitable[Sequence[WebHit]]]
    read_page: Callable[[str], Awaitable[WebPage]]
    # results of this conversation's tools
    keep: KeepResult
    stored: Callable[[UUID], Awaitable[StoredResult | None]]  # None: not there, or not readable any more
    # models
    fast_window: int  # tokens that ask_fast takes
    stream: Callable[[ChatRequest], AsyncGenerator[ChatDelta, None]]
    ask_fast: Callable[[ChatRequest], Awaitable[ChatReply]]
    decide: Callable[[str], Awaitable[Decision]]
    size: Callable[[Wire], int]
    window: int  # tokens that the main model takes
    keep_turns: int  # finished turns that stay in the prompt; the window grows to twice that and steps back at once
    fixed_tokens: int  # of tool schemas and system message
    # memory: the asker's own
    remember: Callable[[Sequence[str]], Awaitable[None]]
    count_citations: Callable[[Collection[UUID]], Awaitable[None]]  # of documents, by the answer
    background: tuple[str, ...]  # what they said earlier and belongs to the question
    # the conversation's own
    note: Note  # what it is about, for what points back; read it as ``record.note``
    read_note: Callable[[], Awaitable[Note]]  # as it is by now
    store_note: Callable[[Note], Awaitable[None]]
    store_handoff: Callable[[Handoff], Awaitable[bool]]  # False: a quicker one was there
    handoff_of: Callable[[Sequence[UUID]], Awaitable[Handoff]]  # the newest up to one of some answers
    # to the asker
    emit: Callable[[str, dict[str, Any]], None]
    token: Callable[[str], None]
    say: Callable[..., str]  # a sentence of ``notices`` in the turn's language
    reasoning_replay: str = "never"  # which of its own reasoning the main model gets back, see apps.models.chat
