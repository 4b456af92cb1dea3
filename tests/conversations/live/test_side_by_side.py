"""A hundred and twenty turns at once, each answered by the whole product: every stream is its own, and in order."""

import asyncio
import re
import threading

from apps.common import database
from apps.common.database import in_db
from apps.conversations.engine import ENGINE
from apps.conversations.models import Message
from apps.conversations.services import start_conversation
from tests.conversations.live.client import Tab, numbered
from tests.vendor import Reply

TURNS, TOKENS = 120, 30
ASKED = re.compile(r"Hello (\d+)")


def words(number):
    return [f"{number}.{n} " if n % 10 else f"{number}.{n}\n\n" for n in range(TOKENS)]


def in_use():
    """How many connections of the process's pools are lent, waited for, or at work."""
    from django.db import connection

    stats = [pool.get_stats() for loop, pool in database._pools.items() if loop.is_running()]
    lent = sum(one["pool_size"] - one["pool_available"] + one.get("requests_waiting", 0) for one in stats)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        busy = cursor.fetchone()[0]
    assert stats
    return lent + busy


async def test_small_tokens_of_many_turns_stay_in_order(server, session, people, scripted_model, monkeypatch):
    """No answer goes on behind its first token before all of them have begun: then none of them holds a connection."""
    monkeypatch.setattr(ENGINE, "run_turn", None)
    begun, all_begun, go_on = set(), threading.Event(), threading.Event()

    def answer(request):
        if not request.body.get("stream"):
            return Reply("{}")
        number = ASKED.search(request.body["messages"][-1]["content"])[1]
        begun.add(number)
        if len(begun) == TURNS:
            all_begun.set()
        return Reply(pieces=words(number), per_second=60, hold=go_on, hold_after=1)

    scripted_model.otherwise = answer
    places = await in_db(lambda: [start_conversation(workspace=people.acme, actor=people.ann) for _ in range(TURNS)])
    tabs = [Tab(server, place.pk, session=session) for place in places]
    for i in range(0, TURNS, 40):
        await asyncio.gather(*(tab.__aenter__() for tab in tabs[i : i + 40]))
    try:
        await asyncio.gather(*(tab.ask(f"Hello {number}") for number, tab in enumerate(tabs)))
        assert await asyncio.to_thread(all_begun.wait, 60)
        async with asyncio.timeout(20):
            while await in_db(in_use):  # events are still stored, and the process beats
                await asyncio.sleep(0.02)
        go_on.set()
        ends = await asyncio.gather(*(tab.turn() for tab in tabs))
    finally:
        go_on.set()
        await asyncio.gather(*(tab.__aexit__(None, None, None) for tab in tabs))
    assert {end["status"] for end in ends} == {"succeeded"}
    for number, tab in enumerate(tabs):
        assert tab.text == "".join(words(number))
        assert [frame["seq"] for frame in numbered(tab.frames)] == list(range(1, len(tab.frames) + 1))
        assert {frame["turn"] for frame in tab.frames} == {ends[number]["turn"]}
        assert [frame["index"] for frame in tab.frames if frame["type"] == "block"] == [0, 1, 2, 3]
    answers = await in_db(
        lambda: {
            str(turn): text
            for turn, text in Message.objects.filter(conversation__in=places, role=Message.Role.ASSISTANT).values_list(
                "turn_id", "text"
            )
        }
    )
    assert answers == {end["turn"]: "".join(words(number)) for number, end in enumerate(ends)}
