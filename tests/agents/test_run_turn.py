"""run_turn: real PostgreSQL, real checkpoints, a scripted model over real HTTP."""

import asyncio
import threading
from uuid import uuid4

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connections as django_connections

from apps.agents import checkpoints, runner
from apps.agents.models import Agent
from apps.agents.services import default_agent
from apps.agents.turn import AskOptions, TurnRequest
from apps.common import database
from apps.knowledge.models import KnowledgeBase
from apps.models import connections
from apps.workspaces.principals import Principal
from tests.agents.fakes import Sink
from tests.vendor import Reply, call

pytestmark = pytest.mark.django_db(transaction=True)

SEARCH = call("doc_retrieval", {"query": "leave"}, "k1")


@pytest.fixture(autouse=True)
async def pools():
    yield
    await runner.stop()
    await database.close_pool()
    await connections.close()
    await sync_to_async(django_connections.close_all)()  # of the thread behind acreate and its kin


class Talk:
    """One conversation; rows are a list here."""

    def __init__(self, user, workspace, **options):
        self.user, self.workspace, self.options = user, workspace, options
        self.conversation = uuid4()
        self.rows = []
        self.rebuilt = 0
        self.number = 0
        self.ids = []

    @property
    def turn_id(self):
        return self.ids[-1]

    def attachments(self):
        return ()

    async def ask(self, question, *, stop=None, sink=None, agent=None, number=None, **options):
        self.number = number or self.number + 1
        rows = list(self.rows)

        async def history():
            self.rebuilt += 1
            return rows

        self.ids.append(uuid4())
        request = TurnRequest(
            turn_id=self.turn_id,
            conversation_id=self.conversation,
            workspace_id=self.workspace.pk,
            asker=Principal.of(self.user),
            agent_id=agent,
            question=question,
            options=AskOptions(**{**self.options, **options}),
            history=history,
            number=self.number,
            attachments=self.attachments(),
        )
        self.rows.append({"role": "user", "content": question})
        self.sink = sink or Sink()
        outcome = await runner.run_turn(request, events=self.sink, stop=stop or asyncio.Event())
        self.rows.append({"role": "assistant", "content": outcome.text})
        assert outcome.text == self.sink.text
        return outcome

    async def state(self):
        saver = await checkpoints.saver()
        return await saver.load({"configurable": {"thread_id": str(self.conversation)}})


@pytest.fixture
def talk(ann, acme, handbook, scripted_model):
    return Talk(ann, acme)


async def test_a_question_is_searched_and_answered(talk, vendor):
    vendor.script([Reply(tool_calls=[SEARCH]), Reply("It is ten days [[c1]].")])
    outcome = await talk.ask("How long is annual leave?")
    said = "Nothing was found for this. Looked for: “leave”"  # whatever the model says from its memory
    assert (outcome.status, outcome.text, outcome.error) == ("succeeded", said, None)
    assert outcome.usage["unknown_citations"] == 1
    assert outcome.usage["prompt"] > 0
    assert 0 < outcome.usage["prefix_reused"] < 1
    assert talk.sink.of("usage") == [outcome.usage]
    assert talk.sink.of("tool.finished")[0]["ok"]
    first, second = (request.raw for request in vendor.requests)
    assert second.startswith(first[: first.rindex(b'}],"') if b'}],"' in first else 200])


async def test_the_next_turn_continues_from_the_checkpoint(talk, vendor):
    vendor.script([Reply(tool_calls=[SEARCH]), Reply("None."), Reply("None either."), Reply("None.")])
    await talk.ask("How long is annual leave?")
    outcome = await talk.ask("And sick leave?")
    assert outcome.status == "succeeded"
    assert talk.rebuilt == 0
    roles = [message["role"] for message in vendor.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"]
    assert vendor.requests[-1].messages[1]["content"] == "How long is annual leave?"
    assert outcome.usage["prefix_reused"] > 0.5
    async with (await checkpoints.pool()).connection() as connection:
        cursor = await connection.execute(
            "SELECT count(*) AS n, (SELECT count(*) FROM checkpoint_writes WHERE thread_id = %(t)s) AS writes"
            " FROM checkpoints WHERE thread_id = %(t)s",
            {"t": str(talk.conversation)},
        )
        assert await cursor.fetchone() == {"n": 1, "writes": 0}


async def test_nothing_of_the_turns_context_is_stored(talk, vendor, settings):
    vendor.script([Reply("Hello!")])
    await talk.ask("Hello")
    async with (await checkpoints.pool()).connection() as connection:
        stored = b""
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            cursor = await connection.execute(f"SELECT t::text AS row FROM {table} t")
            stored += "".join([row["row"] for row in await cursor.fetchall()]).encode()
        cursor = await connection.execute("SELECT blob FROM checkpoint_blobs WHERE blob IS NOT NULL")
        stored += b"".join([bytes(row["blob"]) for row in await cursor.fetchall()])
    for secret in (settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, "turn_context", "Today is"):
        assert secret.encode() not in stored


async def test_a_lost_checkpoint_is_rebuilt_from_rows(talk, vendor):
    vendor.script([Reply("One."), Reply("Two."), Reply("Three.")])
    await talk.ask("Hello one")
    await runner.forget(talk.conversation)
    await talk.ask("Hello two")
    assert talk.rebuilt == 1
    assert [m["content"] for m in vendor.requests[-1].messages[1:3]] == ["Hello one", "One."]
    # A turn that another process answered from memory: rows have it, the checkpoint does not.
    talk.rows += [{"role": "user", "content": "Hello between"}, {"role": "assistant", "content": "Between."}]
    await talk.ask("Hello three", number=4)
    assert talk.rebuilt == 2
    assert "Between." in [m["content"] for m in vendor.requests[-1].messages]


async def test_a_stop_ends_the_answer_and_closes_the_upstream(talk, vendor):
    stop, hold = asyncio.Event(), threading.Event()
    vendor.script([Reply(text="Ten days and more", hold=hold, hold_after=2)])
    sink = Sink()
    turn = asyncio.create_task(talk.ask("Hello", stop=stop, sink=sink))
    async with asyncio.timeout(60):
        while sink.text != "Ten days":
            await asyncio.sleep(0.01)
        stop.set()
        outcome = await turn
    hold.set()
    assert outcome.status == "stopped"
    assert outcome.text == "Ten days"
    assert (await talk.state())["messages"][-1] == {"role": "assistant", "content": "Ten days"}


async def test_a_cancelled_turn_leaves_a_thread_that_works(talk, vendor):
    hold = threading.Event()
    vendor.script([Reply(text="Ten days and more", hold=hold, hold_after=2)])
    sink = Sink()
    turn = asyncio.create_task(talk.ask("Hello", sink=sink))
    async with asyncio.timeout(60):
        while sink.text != "Ten days":
            await asyncio.sleep(0.01)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    hold.set()
    assert (await talk.state())["messages"][-1] == {"role": "assistant", "content": "Ten days"}
    vendor.script([Reply("Better now.")])
    outcome = await talk.ask("Hello again")
    assert outcome.text == "Better now."
    assert talk.rebuilt == 0


async def test_a_cancel_in_tools_leaves_a_thread_that_works(talk, vendor, monkeypatch):
    searching = asyncio.Event()

    async def never(*args, **kwargs):
        searching.set()
        await asyncio.sleep(60)

    monkeypatch.setattr("apps.agents.powers.search", never)
    vendor.script([Reply(tool_calls=[SEARCH])])
    turn = asyncio.create_task(talk.ask("How long is annual leave?"))
    async with asyncio.timeout(60):
        await searching.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    vendor.script([Reply("Fine.")])
    assert (await talk.ask("Hello again")).text == "Fine."
    sent = vendor.requests[-1].messages
    calls = {c["id"] for m in sent for c in m.get("tool_calls") or ()}
    assert {m["tool_call_id"] for m in sent if m["role"] == "tool"} == calls
    assert [m["role"] for m in sent if m["role"] in {"user", "system"}] == ["system", "user", "user"]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=401), "model_refused"),
        (Reply(text="Ten days", cut_after=2), "stream_broken"),
        (Reply(text="Ten days", error_after=2), "stream_broken"),
        (Reply(text=""), "empty_answer"),
    ],
)
async def test_a_failing_model_is_an_outcome_with_what_was_said(talk, vendor, reply, code):
    vendor.script([reply])
    outcome = await talk.ask("Hello")
    assert outcome.status == "failed"
    assert outcome.error["code"] == code
    assert "sk-canary" not in str(outcome)
    vendor.script([Reply("Better now.")])
    assert (await talk.ask("Hello again")).text == "Better now."
    assert talk.rebuilt == 0


async def test_a_foreign_workspace_agent_or_base_is_not_found(talk, mal, vendor):
    workspace = await sync_to_async(lambda: mal.workspaces.get())()
    theirs = await sync_to_async(default_agent)(workspace)
    base = await KnowledgeBase.objects.acreate(workspace=workspace, name="Secret")
    for changes in ({"agent": theirs.pk}, {"knowledge_bases": (base.pk,)}, {"knowledge_bases": (uuid4(),)}):
        outcome = await talk.ask("How long is annual leave?", **changes)
        assert (outcome.status, outcome.error["code"]) == ("failed", "not_found")
    talk.user = mal
    assert (await talk.ask("How long?")).error["code"] == "not_found"
    assert vendor.requests == []


async def test_an_agents_configuration_only_narrows(talk, acme, vendor, monkeypatch):
    seen = []

    async def search(user, query, *, knowledge_bases, top_k, filters):
        seen.append(knowledge_bases)
        raise AssertionError

    monkeypatch.setattr("apps.agents.powers.search", search)
    agent = await Agent.objects.acreate(
        workspace=acme, name="Narrow", tools=["doc_retrieval"], all_knowledge_bases=False
    )
    other = await KnowledgeBase.objects.acreate(workspace=acme, name="Other")
    outcome = await talk.ask("How long is annual leave?", agent=agent.pk)
    assert "No knowledge base is selected" in outcome.text
    await agent.knowledge_bases.aadd(other)
    vendor.script([Reply(tool_calls=[SEARCH]), Reply("Nothing.")])
    await talk.ask("How long is annual leave?", agent=agent.pk)
    assert seen == [(other.pk,)]
    assert {tool["function"]["name"] for tool in vendor.requests[-1].body["tools"]} == {
        "doc_retrieval",
        "get_stored_data",
    }


async def test_a_state_that_cannot_be_read_is_replaced(talk, vendor):
    vendor.script([Reply("One."), Reply("Two."), Reply("Three.")])
    await talk.ask("Hello 1")
    async with (await checkpoints.pool()).connection() as connection:
        await connection.execute("UPDATE checkpoint_blobs SET type = 'of an older library', blob = 'x'")
    for question in ("Hello 2", "Hello 3"):
        assert (await talk.ask(question)).status == "succeeded"
        assert talk.rebuilt == 1  # of rows, once
    assert [m["content"] for m in (await talk.state())["messages"]] == [
        "Hello 1", "One.", "Hello 2", "Two.", "Hello 3", "Three."
    ]  # fmt: skip


async def test_questions_in_quick_succession_make_one_note_of_all_of_them(talk, vendor, monkeypatch):
    monkeypatch.setattr("apps.agents.afterwards.QUIET_S", 60)
    vendor.otherwise = lambda request: Reply("Hi." if request.body.get("stream") else "They greet.")
    for number in range(1, 5):
        await talk.ask(f"Hello {number}")
    await runner.settled()
    vendor.requests.clear()
    await talk.ask("Hello 5")
    await talk.ask("Hello 6")
    await runner.settled()
    [note] = [
        str(r.messages[-1]["content"]) for r in vendor.requests if "</note>\n<turns>" in r.messages[-1]["content"]
    ]
    assert [word in note for word in ("They greet.", "Hello 4", "Hello 5", "Hello 6")] == [True, False, True, True]


async def test_checkpoints_out_of_reach_cost_a_warning_and_no_answer(talk, vendor, monkeypatch):
    vendor.script([Reply("One."), Reply("Two."), Reply("Three.")])
    await talk.ask("Hello one")

    with monkeypatch.context() as patch:
        patch.setattr("apps.agents.checkpoints.PUT", "SELECT pg_terminate_backend(pg_backend_pid())")
        outcome = await talk.ask("Hello two")
    assert (outcome.status, outcome.text) == ("succeeded", "Two.")
    [warning] = [step["detail"] for step in talk.sink.of("step") if step["name"] == "checkpoint"]
    assert warning.startswith("The conversation's state")
    # The database is back: the turn that it missed comes from rows.
    assert (await talk.ask("Hello three")).status == "succeeded"
    assert talk.rebuilt == 1
    assert "Two." in [m["content"] for m in vendor.requests[-1].messages]


async def test_a_dropped_connection_is_not_noticed(talk, vendor):
    vendor.script([Reply("One."), Reply("Two.")])
    await talk.ask("Hello one")
    async with await psycopg.AsyncConnection.connect(database.conninfo(), autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'knowsphere checkpoints'"
        )
    outcome = await talk.ask("Hello two")
    assert (outcome.status, talk.rebuilt) == ("succeeded", 0)
    assert [step for step in talk.sink.of("step") if step["name"] == "checkpoint"] == []


async def test_remembered_in_one_conversation_known_in_the_next(talk, ann, acme, vendor):
    outcome = await talk.ask("记住：我在财务部工作")
    assert outcome.status == "succeeded"
    assert vendor.requests == []
    vendor.script([Reply("Hello!")])
    await Talk(ann, acme).ask("Hello")
    assert "我在财务部工作" in vendor.requests[-1].messages[-1]["content"]
    assert "我在财务部工作" not in vendor.requests[-1].messages[0]["content"]


def test_importing_the_runner_does_not_import_langgraph():
    import subprocess
    import sys

    code = "import django; django.setup(); import apps.agents.runner, sys; print('langgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def test_the_tables_are_made_once_and_in_their_own_schema(talk, vendor):
    vendor.script([Reply("One.")])
    await talk.ask("Hello")
    async with (await checkpoints.pool()).connection() as connection:
        assert await checkpoints._are_current(connection)
        cursor = await connection.execute(
            "SELECT DISTINCT schemaname AS name FROM pg_tables WHERE tablename LIKE 'checkpoint%'"
        )
        assert [row["name"] for row in await cursor.fetchall()] == [checkpoints.SCHEMA]
        await connection.execute("ALTER TABLE checkpoint_blobs ALTER COLUMN blob SET STORAGE EXTENDED")
        assert not await checkpoints._are_current(connection)
    await checkpoints.close_pool()
    async with (await checkpoints.pool()).connection() as connection:
        assert await checkpoints._are_current(connection)


async def test_a_state_that_cannot_be_read_is_rebuilt_from_rows(talk, vendor):
    vendor.script([Reply("One."), Reply("Two.")])
    await talk.ask("Hello one")
    async with (await checkpoints.pool()).connection() as connection:
        await connection.execute("UPDATE checkpoint_blobs SET blob = '\\xc1'::bytea")
    outcome = await talk.ask("Hello two")
    assert (outcome.status, talk.rebuilt) == ("succeeded", 1)
    assert "One." in [message["content"] for message in vendor.requests[-1].messages]
