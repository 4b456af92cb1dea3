"""The prompt of a long conversation: twenty turns of two tool calls each, results of 10 KB.

What repeats the request before is counted from the bytes that reach the scripted vendor, for three sizes of the
model's window. The ideal is an append-only prompt: each request repeats all of the one before, as far as it is long.
"""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import orjson

from benchmarks.report import Ratio

TURNS = 20
RESULT = 10_240  # characters
WINDOWS = (32_768, 65_536, 131_072)
NAMED = {"", "turn_border", "window_step", "handoff", "changed_switch"}


@dataclass
class Figures:
    """Bytes over a whole conversation."""

    sent: int = 0
    reused: int = 0
    ideal: int = 0
    sent_inside: int = 0  # of requests that are not their turn's first
    reused_inside: int = 0
    inlined: int = 0
    checkpoint: int = 0
    messages: int = 0
    breaks: list[str] = field(default_factory=list)


def run() -> list[Ratio]:
    """Hold the conversation in each window."""
    ratios = []
    for window in WINDOWS:
        told = asyncio.run(hold(window))
        if unnamed := [place for place in told.breaks if place not in NAMED]:
            raise RuntimeError(f"the prompt's beginning broke at {unnamed}")
        size = f"window {window // 1024}k"
        ratios += [
            Ratio(f"{size}: repeated within a turn", told.sent_inside, told.reused_inside, "B", 1 / 0.999),
            Ratio(f"{size}: repeated, of the ideal", told.ideal, told.reused, "B", 1 / 0.92),
            Ratio(f"{size}: repeated, of all", told.sent, told.reused, "B", 1 / 0.87),
            Ratio(f"{size}: prompt, of results inlined", told.sent, told.inlined, "B", 1 / 3),
            Ratio(f"{size}: checkpoint, of its messages", told.checkpoint, told.messages, "B", 1.2),
        ]
    return ratios


async def hold(window: int) -> Figures:
    """Ask twenty questions; return what went over the wire."""
    from apps.agents import checkpoints, runner
    from apps.agents.turn import AskOptions, TurnRequest
    from apps.common import database
    from apps.models import connections
    from apps.workspaces.principals import Principal
    from tests.vendor.server import Vendor

    vendor = Vendor().start()
    vendor.otherwise = _answer
    user, workspace, agent = await database.in_db(_people, vendor.url, window)
    conversation = uuid4()
    told = Figures()
    before = b""
    with _scripted():
        for number in range(1, TURNS + 1):
            request = TurnRequest(
                turn_id=uuid4(), conversation_id=conversation, workspace_id=workspace, asker=Principal.of(user),
                agent_id=agent, question=f"What do https://a.example/{number} and https://b.example/{number} say?",
                options=AskOptions(web=True), history=_none, number=number,
            )  # fmt: skip
            vendor.requests.clear()
            sink = SimpleNamespace(emit=lambda *_: None, token=lambda *_: None)
            outcome = await runner.run_turn(request, events=sink, stop=asyncio.Event())
            if outcome.status != "succeeded":
                raise RuntimeError(str(outcome.error))
            await runner.settled()
            told.breaks += [one["break"] for one in outcome.usage["requests"]]
            streamed = [r.body for r in vendor.requests if r.path.endswith("completions") and r.body.get("stream")]
            for place, body in enumerate(streamed):
                before = _count(told, before, body, first=place == 0)
    saver = await checkpoints.saver()
    state = await saver.load({"configurable": {"thread_id": str(conversation)}}) if saver else None
    told.messages = len(orjson.dumps((state or {})["messages"]))
    async with (await checkpoints.pool()).connection() as connection:
        cursor = await connection.execute(
            "SELECT coalesce(sum(length(blob)), 0) AS n FROM checkpoint_blobs WHERE thread_id = %s",
            (str(conversation),),
        )
        row = await cursor.fetchone()
        told.checkpoint = int(row["n"]) if row else 0
    await runner.stop()
    await connections.close()
    await database.close_pool()
    vendor.stop()
    return told


def _count(told: Figures, before: bytes, body: dict[str, Any], *, first: bool) -> bytes:
    parts = (*body.get("tools", ()), *body["messages"])
    now = b"\n".join(orjson.dumps(part) for part in parts)
    same = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    told.sent += len(now)
    told.reused += same
    told.ideal += min(len(before), len(now))
    if not first:
        told.sent_inside += len(before)
        told.reused_inside += same
    pointers = [m["content"] for m in body["messages"] if str(m.get("content")).startswith('{"__stored"')]
    told.inlined += len(now) + sum(RESULT - len(pointer) for pointer in pointers)
    return now


def _answer(request: Any) -> Any:
    from tests.vendor import Reply, call

    if not request.body.get("stream"):
        return Reply("pump P-7 costs 1,250 EUR; delivered in ten days; order 7781. " * 6)
    messages = request.messages
    asked = max(i for i, message in enumerate(messages) if message["role"] == "user")
    made = sum(message["role"] == "tool" for message in messages[asked:])
    number = sum(message["role"] == "user" for message in messages)
    if made < 2:
        words = messages[asked]["content"].rpartition("What do ")[2].split()
        return Reply(
            tool_calls=[call("web_fetch", {"url": words[0 if made == 0 else 2]}, f"k{number}_{made}_{uuid4().hex}")]
        )
    return Reply("The pump costs 1,250 EUR and comes in ten days [[c1]]. " * 6)


async def _none() -> list[Any]:
    return []


def _people(url: str, window: int) -> tuple[Any, Any, Any]:
    from apps.agents import editing
    from apps.models.models import ModelConfig
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    user = User.objects.create_user(f"{uuid4().hex}@bench.example")
    workspace = create_workspace(name="Prompt", owner=user)
    model = ModelConfig.objects.create(
        kind="chat",
        name="scripted-chat",
        base_url=url,
        configuration={"context_window": window, "capabilities": ["tools"]},
    )
    values = {"name": "Web", "tools": ["web_fetch", "web_search"], "model": model.pk}
    agent = editing.create_agent(workspace=workspace, values=values, actor=user)
    return user, workspace.pk, agent.pk


def _scripted() -> Any:
    """Put a page of 10 KB behind every address, and let the vendor's words be the intent."""
    from contextlib import ExitStack
    from unittest.mock import patch

    from django.conf import settings

    from apps.agents.web.hits import WebPage
    from apps.models.decision import Decision

    async def read_page(url: str) -> Any:
        line = f"The pump P-7 of {url} costs 1,250 EUR since May 2026.\n"
        return WebPage(url, "Pumps", (line * (RESULT // len(line) + 1))[:RESULT])

    async def decide(question: str, **options: Any) -> Any:
        return Decision("web_search", 1.0, "local")

    stack = ExitStack()
    stack.enter_context(patch("apps.agents.powers.read_page", read_page))
    stack.enter_context(patch("apps.agents.powers.decide_intent", decide))
    stack.enter_context(patch.object(settings, "CHAT_MODEL", ""))
    return stack
