"""What a turn costs beside its tokens: statements of SQL and calls of models, from the question to what follows it."""

import asyncio
import sys
from uuid import uuid4

import psycopg
import pytest
from django.utils import timezone

from apps.agents import runner
from apps.common.database import in_db
from apps.conversations.models import Message, Turn
from tests.conversations.live.client import Tab
from tests.conversations.live.test_agent_over_socket import SEARCH, a_base
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

MOST = 25
MOST_A_CALL = 2
# Retrieval, the ledger's flush and the budgets (of all turns together, as the events' flush is), and the test's own.
ELSEWHERE = (
    "apps/knowledge/retrieval/",
    "apps/models/ledger.py",
    "apps/models/budgets.py",
    "tests/conversations/live/test_",
)
# What is done for all turns together, or as time goes by: events, beats, what lapsed, looks at a reader's rights; and
# what a new connection begins with.
SHARED = {
    *("insert_events", "_beat", "_sweep", "expire", "_lapsed", "erase_waiting", "_guard_watching"),
    "connect",
}


def counts():
    """Whether the statement that is about to run, two frames up, is a turn's own."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_name in SHARED or any(place in code.co_filename for place in ELSEWHERE):
            return False
        frame = frame.f_back
    return True


@pytest.fixture
def statements(monkeypatch):
    """The SQL that the server's turns run, as it runs; transactions' own words are not statements."""
    seen = []

    def watch(cursor, name, wrap):
        monkeypatch.setattr(cursor, name, wrap(getattr(cursor, name)))

    def note(query):
        text = " ".join(str(query).split())[:100]
        if not text.startswith(("SAVEPOINT", "RELEASE SAVEPOINT")):
            seen.append(text)

    def sync(execute):
        def executed(self, query, *args, **kwargs):
            if counts():
                note(query)
            return execute(self, query, *args, **kwargs)

        return executed

    def unsync(execute):
        async def executed(self, query, *args, **kwargs):
            if counts():
                note(query)
            return await execute(self, query, *args, **kwargs)

        return executed

    for name in ("execute", "executemany"):
        watch(psycopg.Cursor, name, sync)
        watch(psycopg.AsyncCursor, name, unsync)
    return seen


async def settled(one):
    """Wait until the turn is over and what follows it is done."""
    end = await one.turn()
    assert (end["status"], end["error"]) == ("succeeded", None)
    async with asyncio.timeout(30):
        while runner._behind:
            await asyncio.sleep(0.01)


def seed(conversation, count):
    """So many turns that are over."""
    turns, messages, before = [], [], None
    for number in range(1, count + 1):
        turn = Turn(
            id=uuid4(), conversation=conversation, parent=before, number=number, client_id=uuid4().hex,
            status=Turn.Status.SUCCEEDED, question=f"Question {number}", finished_at=timezone.now(),
        )  # fmt: skip
        turns.append(turn)
        messages += [
            Message(conversation=conversation, turn=turn, role="user", text=turn.question),
            Message(conversation=conversation, turn=turn, role="assistant", text=f"Answer {number}."),
        ]
        before = turn
    Turn.objects.bulk_create(turns)
    Message.objects.bulk_create(messages)


async def test_sql_of_a_turn_does_not_grow(tab, server, session, people, conversation, scripted_model, statements):  # noqa: F811
    """Greetings of ten and of a thousand tokens, the second turn and the two hundred and second; then tools."""
    from apps.conversations.services import start_conversation

    await in_db(a_base, people)
    long = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.ann))
    await in_db(seed, long, 199)

    async def ask(one, question, *replies):
        scripted_model.script(replies)
        statements.clear()
        await one.ask(question)
        await settled(one)
        assert len(statements) <= MOST + MOST_A_CALL * sum(len(reply.tool_calls) for reply in replies), "\n".join(
            statements
        )
        return sorted(statements)

    small, large = Reply("word " * 10), Reply("word " * 1000)
    async with tab() as one, Tab(server, long.pk, session=session) as two:
        scripted_model.script([small])
        await one.ask("Hello")  # makes the workspace's agent
        await settled(one)
        second = await ask(one, "Hello", small)
        assert await ask(one, "Hello", large) == second
        await ask(two, "Hello", small)  # finds no state, and rebuilds it; then the window steps back
        await ask(two, "Hello", small)
        noted = [said for said in await ask(two, "Hello", small) if "memory_conversationnote" not in said]
        assert noted == [said for said in second if "memory_conversationnote" not in said]
        read = call("list_chunks", {"ids": ["c1"]}, "k2")
        plain = await ask(one, "How long is annual leave?", Reply(tool_calls=[SEARCH]), Reply("Ten days [[c1]]."))
        more = Reply(tool_calls=[SEARCH]), Reply(tool_calls=[read]), Reply("Ten days [[c1]].")
        assert len(await ask(one, "How long is annual leave?", *more)) - len(plain) <= MOST_A_CALL


async def test_models_are_called_only_where_the_design_needs_them(tab, people, scripted_model):  # noqa: F811
    await in_db(a_base, people)
    async with tab() as one:
        scripted_model.script([Reply("Hello!")])
        await one.ask("Hello")
        await settled(one)
        assert 1 <= len(scripted_model.requests) <= 2, "a greeting"

        scripted_model.requests.clear()
        read = call("list_chunks", {"ids": ["c1"]}, "k2")
        scripted_model.script([Reply(tool_calls=[SEARCH]), Reply(tool_calls=[read]), Reply("Ten days [[c1]].")])
        await one.ask("How long is annual leave?")
        await settled(one)
        understanding = [request for request in scripted_model.requests if not request.body.get("stream")]
        answering = [request for request in scripted_model.requests if request.body.get("stream")]
        assert len(understanding) <= 2, "its references and its intent"
        assert len(answering) <= 3, "search, read, answer"
