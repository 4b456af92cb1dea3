"""Stop inside a tool, with the product's own runner: it ends at once, what was said stays, and one may ask on."""

import asyncio
import threading

import pytest

from apps.agents import editing, powers
from apps.common.database import in_db
from apps.conversations.models import Message
from apps.conversations.services import start_conversation
from tests.conversations.live.client import Tab
from tests.conversations.live.test_agent_over_socket import QUESTION, SEARCH, a_base
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

FETCH = call("web_fetch", {"url": "https://slow.example/"}, "k1")


@pytest.mark.parametrize(
    ("power", "question", "asked", "in_thread"),
    [
        ("read_page", "What does https://slow.example/ say?", FETCH, False),
        ("search", QUESTION, SEARCH, False),
        ("search", QUESTION, SEARCH, True),
    ],
    ids=["web_fetch", "doc_retrieval", "in a thread, which nothing can end"],
)
async def test_stop_inside_a_tool(
    server, session, people, scripted_model, settings, monkeypatch, tab, power, question, asked, in_thread  # noqa: F811
):  # fmt: skip
    begun, ended, released, worked = (threading.Event() for _ in range(4))

    def works():
        begun.set()
        released.wait(60)
        worked.set()
        raise RuntimeError("nobody waits for this any more")

    async def hangs(*args, **options):
        begun.set()
        try:
            await (asyncio.to_thread(works) if in_thread else asyncio.sleep(3600))
        finally:
            ended.set()

    def web():
        values = {"name": f"Web {power} {in_thread}", "tools": ["web_fetch", "doc_retrieval"]}
        agent = editing.create_agent(workspace=people.acme, values=values, actor=people.ann)
        return start_conversation(workspace=people.acme, actor=people.ann, agent=agent)

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers, power, hangs)
    await in_db(a_base, people)
    conversation = await in_db(web)
    scripted_model.script([Reply("Let me look.", tool_calls=[asked]), Reply("Hello again!")])
    async with Tab(server, conversation.pk, session=session) as one:
        await one.ask(question, web=power == "read_page")
        started = await one.until("tool.started")
        assert await asyncio.to_thread(begun.wait, 30), one.frames
        await one.send(type="stop", turn=started["turn"])
        end = await one.turn()
        assert end["status"] == "stopped"
        assert ended.is_set()  # not left to its own limit of 45 s
        assert not worked.is_set()  # nor is a thread waited for; what it comes to is nobody's
        released.set()
        assert one.text == "Let me look."
        assert await in_db(lambda: Message.objects.get(pk=end["message"]).text) == "Let me look."
        [finished] = [frame for frame in one.frames if frame["type"] == "tool.finished"]
        assert finished["ok"] is False
        one.frames.clear()
        await one.ask("Hello")
        assert (await one.turn())["status"] == "succeeded"
        assert one.text == "Hello again!"
    sent = [request.body["messages"] for request in scripted_model.requests if request.body.get("stream")][-1]
    calls = [c["id"] for message in sent for c in message.get("tool_calls") or ()]
    assert calls == [message["tool_call_id"] for message in sent if message["role"] == "tool"]  # pairs are whole
