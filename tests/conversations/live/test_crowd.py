"""Many sockets at once, and what of their questions is counted."""

import asyncio
from uuid import uuid4

from django.db.models import F

from apps.common import database
from apps.common.database import in_db
from apps.workspaces.models import AuditEvent, Quota
from tests.conversations.live.client import Tab
from tests.conversations.live.conftest import turns_used
from tests.conversations.scripted import words


async def test_two_hundred_sockets_use_few_connections(server, session, people):
    """All of them ask, then idle: connections stay within the pools and go back to them."""
    from apps.conversations.services import start_conversation

    def begin():
        return [start_conversation(workspace=people.acme, actor=people.ann) for _ in range(200)]

    tabs = [Tab(server, conversation.pk, session=session) for conversation in await in_db(begin)]
    for i in range(0, 200, 50):
        await asyncio.gather(*(tab.__aenter__() for tab in tabs[i : i + 50]))
    try:
        await asyncio.gather(*(tab.ask("say 10 50") for tab in tabs))
        ends = await asyncio.gather(*(tab.turn() for tab in tabs))
        assert {end["status"] for end in ends} == {"succeeded"}
        assert all(tab.text == "".join(words(10)) for tab in tabs)
        bound = 10 + database.THREADS + 2  # the async pool, the threads of the ORM, the listener and this test
        assert await in_db(connections_of_server) <= bound
    finally:
        await asyncio.gather(*(tab.__aexit__(None, None, None) for tab in tabs))


def connections_of_server():
    """Count the test database's connections, without this thread's own."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        count = cursor.fetchone()[0]
    connection.close()
    return count


async def test_a_question_that_comes_twice_is_counted_once(tab, people):
    used, client_id = await in_db(lambda: turns_used(people)), uuid4().hex
    async with tab() as one:
        await one.ask("say 1", client_id)
        await one.turn()
        await one.ask("say 1", client_id)
        await one.ask("say 1", parent=str(uuid4()))
        assert (await one.until("error"))["code"] == "not_found"
    assert await in_db(lambda: turns_used(people)) == used + 1


async def test_a_question_that_comes_twice_needs_no_room_for_the_second(tab, people):
    quota, client_id = Quota.objects.filter(workspace=people.acme, user=None, kind="turns"), uuid4().hex
    async with tab() as one:
        await one.ask("say 1", client_id)
        end = await one.turn()
        await in_db(lambda: quota.update(limit=F("used")))
        try:
            await one.ask("say 1", client_id)
            again = await one.turn()
            await one.ask("say 1")
            assert (await one.until("error"))["code"] == "quota_exceeded"
        finally:
            await in_db(lambda: quota.update(limit=None))
    assert again == end
    asked = await in_db(lambda: AuditEvent.objects.filter(action="question.asked", target_id=end["turn"]).get())
    assert (asked.kind, asked.actor_id, asked.right, asked.ip) == ("person", people.ann.pk, "owner", "127.0.0.1")
    assert asked.workspace_id == people.acme.pk
