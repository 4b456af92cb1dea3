"""What the agent promises, driven through the socket with a scripted vendor; one test for each group of promises.

The graph's nodes: ``prepare_context`` forgets the last turn's findings and hands the recent pairs on;
``manage_memory`` stores what is to be remembered and brings it back; ``query_understand`` restores references alone,
in requests of its own; routes are chosen by code; ``agent`` gets the tools that work; ``tools`` tries passing
failures again, visibly; large results are put away; ``collect_sources`` numbers this turn's; a missing checkpoint
costs a warning.
Handoffs, plans and refusals: ``test_agent_over_socket``. Statements and calls of models: ``test_costs``.
"""

import json
from contextlib import asynccontextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from apps.agents import checkpoints, editing, powers
from apps.agents.web.hits import WebPage
from apps.common.database import in_db
from apps.common.errors import ServiceUnavailable
from apps.conversations.models import Message
from apps.conversations.services import start_conversation
from apps.knowledge.models import Document
from apps.memory.models import MemoryItem
from apps.workspaces.models import User
from tests.conversations.live.client import Tab
from tests.conversations.live.test_agent_over_socket import QUESTION, SEARCH, a_base
from tests.conversations.live.test_costs import settled
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

CITED = "Ten days [[c1]]."


class Talk:
    """A tab whose questions are asked one by one; ``sent`` are the main model's requests of the last turn."""

    def __init__(self, one, vendor):
        self.one, self.vendor = one, vendor

    async def ask(self, question, *replies, **options):
        self.one.frames.clear()
        self.vendor.requests.clear()
        self.vendor.script(replies)
        await self.one.ask(question, **options)
        await settled(self.one)
        return self.one.text

    def of(self, kind):
        return [frame for frame in self.one.frames if frame["type"] == kind]

    @property
    def sent(self):
        return [request.body for request in self.vendor.requests if request.body.get("stream")]

    @property
    def short(self):
        return [request.body for request in self.vendor.requests if not request.body.get("stream")]


@pytest.fixture
def talk(server, session, people, conversation, scripted_model, tab):  # noqa: F811
    @asynccontextmanager
    async def talk(place=conversation):
        await in_db(a_base, people)
        async with Tab(server, place.pk, session=session) as one:
            yield Talk(one, scripted_model)

    return talk


def understanding(rewrite):
    """A vendor's answers to the short requests: a rewrite, an intent, anything else."""

    def answer(request):
        said = request.body["messages"][-1]["content"]
        if "<question>" in said:
            return Reply(rewrite)
        return Reply(json.dumps({"label": "kb_search", "confidence": 0.9}))

    return answer


async def test_a_question_is_understood_by_requests_of_its_own(talk, scripted_model):
    """References are restored from the last pairs; a rewrite that orders is passed over; nothing of it stays."""
    async with talk() as one:
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        restored = "How long is annual leave in May?"
        scripted_model.otherwise = understanding(restored)
        await one.ask("And how long is it in May?", Reply(tool_calls=[SEARCH]), Reply(CITED))
        [told] = one.of("understanding")
        assert (told["rewrite_query"], told["intent"]) == (restored, "kb_search")
        rewriting = next(body for body in one.short if "<question>" in body["messages"][-1]["content"])
        assert f"Q: {QUESTION}\nA: Ten days" in rewriting["messages"][-1]["content"]
        assert "tools" not in rewriting
        main = one.sent[0]["messages"]
        assert rewriting["messages"][0] != main[0]
        assert f"The question with its references restored: {restored}" in main[-1]["content"]
        assert "<earlier>" not in json.dumps(main)

        scripted_model.otherwise = understanding("Please search again for annual leave in June")
        await one.ask("And how long is it in June?", Reply(tool_calls=[SEARCH]), Reply(CITED))
        assert one.of("understanding")[0]["rewrite_query"] == "And how long is it in June?"
        assert "references restored" not in json.dumps(
            one.sent[0]["messages"]
        )  # neither this turn's nor the last one's


async def test_routes_are_chosen_by_code_and_tools_are_cut_by_switches(talk, people, scripted_model):
    def bare():
        values = {"name": "Bare", "tools": ["doc_retrieval", "list_chunks"], "all_knowledge_bases": False}
        agent = editing.create_agent(workspace=people.acme, values=values, actor=people.ann)
        return start_conversation(workspace=people.acme, actor=people.ann, agent=agent)

    scripted_model.otherwise = understanding("")
    async with talk() as one:
        await one.ask("Hello", Reply("Hello!"))
        assert len(one.sent) == 1
        assert "tools" not in one.sent[0]
        assert not one.of("tool.started")
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        names = [tool["function"]["name"] for tool in one.sent[0]["tools"]]
        assert names == sorted(names)
        assert {"doc_retrieval", "grep_chunks", "list_chunks", "get_document_info", "write_plan"} <= set(names)
        assert not {"web_search", "web_fetch", "query_knowledge_graph", "generate_pptx"} & set(names)
        first = one.sent[0]["messages"][0]["content"]
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED), language="zh-hans")
        changed = one.sent[0]["messages"][0]["content"]
        head = first.index("# This conversation")
        assert changed[:head] == first[:head]
        assert changed != first
        assert one.of("usage")[0]["requests"][0]["break"] == "changed_switch"
    async with talk(await in_db(bare)) as two:
        assert (await two.ask(QUESTION)).startswith("No knowledge base is selected")
        assert two.sent == []


async def test_only_this_turns_results_are_cited_and_markers_are_put_right(talk):
    async with talk() as one:
        said = "Ten days 【c1】, as [c1] and [[C1]] say [[c9]]. See [[c1, c2]]."
        shown = await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(said))
        assert "c9" not in shown
        assert "c2" not in shown
        assert shown.count("[[c1]]") == 4
        assert one.of("usage")[0]["unknown_citations"] == 2
        stored = await in_db(lambda: Message.objects.filter(role="assistant").order_by("-created_at").first().text)
        assert stored == shown
        assert [source["n"] for source in one.of("sources")[-1]["sources"]] == [1]
        again = await one.ask("Hello", Reply("As said: ten days [[c1]]."))
        assert "c1" not in again  # an earlier turn's number is no number of this one
        assert not one.of("sources")


async def test_a_passing_failure_is_tried_again_where_one_sees_it(talk, monkeypatch):
    search, tries = powers.search, []

    async def fails_twice(*args, **options):
        tries.append(1)
        if len(tries) < 3:
            raise ServiceUnavailable(service="database")
        return await search(*args, **options)

    monkeypatch.setattr(powers, "search", fails_twice)
    async with talk() as one:
        assert await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED)) == CITED
        assert len(tries) == 3
        assert [frame["ok"] for frame in one.of("tool.finished")] == [True]
        retries = [frame for frame in one.of("step") if frame["name"] == "retry"]
        assert len(retries) == 2
        assert all(frame["detail"] for frame in retries)


async def test_a_large_result_is_pointed_at_distilled_and_read_by_its_reference(talk, people, settings, monkeypatch):
    line = "The pump P-7 costs 1,250 EUR since May 2026.\n"

    async def read_page(url):
        return WebPage(url, "Pumps", line * 300)

    def web():
        agent = editing.create_agent(
            workspace=people.acme, values={"name": "Web", "tools": ["web_fetch"]}, actor=people.ann
        )
        return start_conversation(workspace=people.acme, actor=people.ann, agent=agent)

    def answer(request):
        messages = request.body["messages"]
        if not request.body.get("stream"):
            return understanding("")(request) if "label" in str(messages) else Reply("P-7: 1,250 EUR")
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if not results:
            return Reply(tool_calls=[call("web_fetch", {"url": "https://pumps.example/prices"}, "k1")])
        if len(results) == 1:
            wanted = {"ref_id": json.loads(results[0])["__refId"], "start": 0, "length": 500}
            return Reply(tool_calls=[call("get_stored_data", wanted, "k2")])
        return Reply("1,250 EUR [[c1]].")

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers, "read_page", read_page)
    async with talk(await in_db(web)) as one:
        one.vendor.otherwise = answer
        shown = await one.ask("What does https://pumps.example/prices say?", web=True)
        assert shown == "1,250 EUR [[c1]]."
        pointer, read = [message["content"] for message in one.sent[-1]["messages"] if message["role"] == "tool"]
        assert set(json.loads(pointer)) >= {"__stored", "__refId", "__summary", "__hint"}
        assert len(pointer) < 4_000
        assert line.strip() in read
        first, second = one.of("tool.finished")
        assert first["ref"]
        assert second["ref"] is None
        assert one.of("sources")[-1]["sources"][0]["url"] == "https://pumps.example/prices"


async def test_what_is_to_be_remembered_comes_back_to_its_person_alone(talk, people, server):
    """In the turn's context, below the rules; what was often cited too; a deleted item is gone at once."""

    def elsewhere(person=people.ann):
        return start_conversation(workspace=people.acme, actor=person)

    async with talk() as one:
        await one.ask("Remember: I work in finance")
        assert one.sent == []
        for _ in range(2):
            await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
    async with talk(await in_db(elsewhere)) as two:
        await two.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        system, *_rest, last = two.sent[0]["messages"]
        assert "finance" not in system["content"]
        assert last["content"].startswith("<turn_context>")
        assert "I work in finance" in last["content"]
        assert "Often consulted: leave.md" in last["content"]
        await in_db(lambda: MemoryItem.objects.all().delete())
        await two.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        assert "finance" not in json.dumps(two.sent[0]["messages"])
        assert two.sent[0]["messages"][1]["content"] == QUESTION  # the last turn's context is not kept
    theirs = await in_db(lambda: elsewhere(people.bea))
    async with Tab(server, theirs.pk, session=await in_db(lambda: people.session(people.bea))) as three:
        other = Talk(three, one.vendor)
        await other.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        assert "Often consulted" not in json.dumps(other.sent[0]["messages"])


async def test_the_state_keeps_what_was_said_and_its_loss_costs_a_warning(talk, conversation, monkeypatch):
    async with talk() as one:
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))

        def state(saver=checkpoints.saver):
            async def load():
                found = await saver()
                return await found.load({"configurable": {"thread_id": str(conversation.pk)}})

            return load()

        kept = (await state())["messages"]
        await checkpoints.close_pool()  # this test's own
        assert [message["role"] for message in kept] == ["user", "assistant", "tool", "assistant"]
        assert kept[0] == {"role": "user", "content": QUESTION}
        assert "Annual leave is ten days" in kept[2]["content"]

        async def away():
            return None

        monkeypatch.setattr(checkpoints, "saver", away)
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        assert [frame["status"] for frame in one.of("step") if frame["name"] == "checkpoint"] == ["failed"]
        assert [message["role"] for message in one.sent[0]["messages"]] == ["system", "user", "assistant", "user"]


async def test_today_is_the_askers_own(talk, people):
    """Two zones whose dates are never the same; what was just added was added on the asker's day, in filters too."""
    async with talk() as one:
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            await in_db(lambda zone=zone: User.objects.filter(pk=people.ann.pk).update(time_zone=zone))
            now = datetime.now(ZoneInfo(zone))
            before = now.date()
            await in_db(lambda now=now: Document.objects.filter(name="leave.md").update(created_at=now))
            day = {"added_from": before.isoformat(), "added_to": before.isoformat()}
            search = call("doc_retrieval", {"query": "annual leave", **day}, "k1")
            assert await one.ask(QUESTION, Reply(tool_calls=[search]), Reply(CITED)) == CITED
            after = datetime.now(ZoneInfo(zone)).date()
            asked = one.sent[0]["messages"][-1]["content"]
            assert any(f"Today is {day.isoformat()}." in asked for day in (before, after)), asked
    await in_db(lambda: User.objects.filter(pk=people.ann.pk).update(time_zone=people.ann.time_zone))
