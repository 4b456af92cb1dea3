"""A turn's context by hand: real values, and powers that a test fills in."""

import asyncio
from dataclasses import dataclass
from functools import partial
from uuid import UUID, uuid4

from apps.agents.context import AgentProfile, Base, Budget, Note, StoredResult, Switches, TurnContext, TurnRecord
from apps.agents.messages import estimated_tokens
from apps.agents.notices import say
from apps.agents.services import DEFAULT_TOOLS
from apps.agents.tools import catalog
from apps.agents.web.hits import WebHit, WebPage
from apps.knowledge.retrieval.passages import Passage, SearchResult
from apps.models.chat import ChatDelta, Usage

BASE = UUID(int=1)


@dataclass(frozen=True)
class Said:
    label: str = "kb_search"
    confidence: float = 0.9
    method: str = "local"


class Sink:
    """Keeps what a turn sends."""

    def __init__(self):
        self.events = []
        self.tokens = []

    def emit(self, kind, data):
        self.events.append((kind, data))

    def token(self, text):
        self.tokens.append(text)

    @property
    def text(self):
        return "".join(self.tokens)

    def of(self, wanted):
        return [data for kind, data in self.events if kind == wanted]

    def steps(self, status="finished"):
        return [data["name"] for data in self.of("step") if data["status"] == status]


def passage(text, *, document="Handbook.md", page=1, heading="", chunk_id=None, document_id=None, base=BASE):
    return Passage(
        chunk_id=chunk_id or uuid4(),
        document_id=document_id or uuid4(),
        knowledge_base_id=base,
        document=document,
        text=text,
        heading=heading,
        page=page,
        page_end=page,
        start=0,
        end=len(text),
        score=1.0,
    )


def make_context(sink=None, *, passages=(), replies=(), question="How long is annual leave?", **changes):
    """A context whose search finds ``passages`` and whose model says ``replies``, in order."""
    sink = sink or Sink()
    record = changes.pop("record", None) or TurnRecord()
    left = list(replies)
    requests = []

    async def search(query, top_k):
        return SearchResult(tuple(passages)[:top_k], empty_reason="" if passages else "no_match")

    async def read(*, chunk_ids=(), document_id=None, first=0, count=10):
        if document_id is None:
            return [p for p in passages if p.chunk_id in chunk_ids]
        return [p for p in passages if p.document_id == document_id][first : first + count]

    async def grep(pattern, limit):
        return [p for p in passages if pattern.lower() in p.text.lower()][:limit]

    async def info(*, document_ids=()):
        return [{"document_id": str(p.document_id), "name": p.document} for p in passages]

    async def readable(document_ids):
        return frozenset(document_ids)

    put_away = {}

    async def keep(*, tool, text, documents, numbers):
        reference = uuid4()
        put_away[reference] = StoredResult(tool, text, tuple(documents), tuple(numbers), of_this_turn=True)
        return reference

    async def stored(reference):
        return put_away.get(reference)

    async def stream(request):
        requests.append(request)
        for delta in left.pop(0):
            yield delta

    async def decide(question):
        return Said()

    async def describe(image):
        return "A red pump."

    async def search_web(query, count):
        return [WebHit("Pumps", "https://pumps.example/prices", "A pump costs 12 EUR.")][:count]

    async def read_page(url):
        return WebPage(url, "Pumps", "A pump costs 12 EUR since May.")

    async def store_handoff(handoff):
        return True

    async def handoff_of(answers):
        return record.handoff

    async def nothing(*args):
        return []

    async def no_note():
        return Note()

    def token(text):
        record.text.append(text)
        sink.token(text)

    switches = changes.get("switches", Switches(knowledge=True))
    tools = catalog.usable(DEFAULT_TOOLS, switches)
    values = {
        "turn_id": uuid4(),
        "conversation_id": uuid4(),
        "number": 1,
        "question": question,
        "today": "2026-11-30",
        "agent": AgentProfile("Assistant"),
        "bases": (Base(BASE, "Handbook"),),
        "switches": switches,
        "tools": tools,
        "schemas": tuple(catalog.schema(tool) for tool in tools.values()),
        "budget": Budget(),
        "rebuilt": [],
        "rewrites": False,
        "record": record,
        "stop": asyncio.Event(),
        "attached": (),
        "describe": describe,
        "search": search,
        "grep": grep,
        "read": read,
        "info": info,
        "readable": readable,
        "search_web": search_web,
        "read_page": read_page,
        "keep": keep,
        "stored": stored,
        "fast_window": 32_768,
        "stream": stream,
        "ask_fast": nothing,
        "decide": decide,
        "size": estimated_tokens,
        "remember": nothing,
        "count_citations": nothing,
        "background": (),
        "note": Note(),
        "read_note": no_note,
        "store_note": nothing,
        "store_handoff": store_handoff,
        "handoff_of": handoff_of,
        "window": 32_768,
        "keep_turns": 8,
        "fixed_tokens": 1_000,
        "emit": sink.emit,
        "token": token,
        "say": partial(say, "en"),
    }
    context = TurnContext(**{**values, **changes})
    return context, sink, requests


def text(content, finish="stop"):
    """A model's answer in pieces."""
    return [
        *(ChatDelta(text=piece) for piece in content.partition(" ")),
        ChatDelta(finish_reason=finish, usage=Usage(10, 5)),
    ]


def calling(*calls):
    return [ChatDelta(tool_calls=list(calls), finish_reason="tool_calls", usage=Usage(10, 5))]
