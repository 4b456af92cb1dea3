"""Several processes on one database: watching, stopping and ending turns that run elsewhere."""

import asyncio
import json
import time
from contextlib import aclosing
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from apps.common.database import close_pool, in_db, pool
from apps.conversations import rows_liveness
from apps.conversations.engine import Engine
from apps.conversations.frames import Ask
from apps.conversations.models import Message, Turn
from apps.conversations.services import asking, start_conversation
from tests.conversations import scripted
from tests.conversations.live.client import Tab
from tests.conversations.scripted import SOURCES, words


@pytest.fixture
async def elsewhere(db):
    """The engine of another process: it shares nothing with the server's but the database."""
    engine = Engine()
    await engine.start()
    yield engine
    await engine.stop()
    await close_pool()


async def follow(engine, turn, after=0):
    frames = []
    async with aclosing(engine.follow(turn, after=after)) as batches:
        async for batch in batches:
            frames += [json.loads(frame) for frame in batch]
    return frames


async def test_a_turn_is_watched_from_another_process(tab, elsewhere):
    async with tab() as one:
        await one.ask("say 100 100")
        turn = UUID((await one.until("token"))["turn"])
        watching = asyncio.create_task(follow(elsewhere, turn))
        end = await one.turn()
        ended = time.monotonic()
        frames = await asyncio.wait_for(watching, 5)
    assert time.monotonic() - ended < 0.5
    assert frames == one.frames
    assert await follow(elsewhere, turn, after=end["seq"] - 1) == [end]
    assert await follow(elsewhere, turn, after=end["seq"]) == []


async def test_an_event_of_any_size_arrives_in_its_place(tab, elsewhere, server, people, session):
    """In the tab that asked, beside it, in another process and from the rows; an answer beside it goes on meanwhile."""
    other = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.ann))
    async with tab() as one, tab() as two, Tab(server, other.pk, session=session) as beside:
        await two.send(type="ping")
        await two.next()
        await beside.ask("say 60 60")
        await beside.until("token")
        await one.ask("huge 33")
        turn = UUID((await one.until("token"))["turn"])
        watching = asyncio.create_task(follow(elsewhere, turn))
        end, also, spoken = await asyncio.gather(one.turn(), two.turn(), beside.turn())
        frames = await asyncio.wait_for(watching, 60)
    assert (end["status"], spoken["status"], one.text, beside.text) == (
        "succeeded",
        "succeeded",
        "Before. After.",
        "".join(words(60)),
    )
    [large] = [frame for frame in frames if len(frame.get("detail", {}).get("text", "")) == 33 << 20]
    assert [frame["seq"] for frame in one.frames] == list(range(1, end["seq"] + 1))
    assert (also, frames, two.frames[1:]) == (end, one.frames, one.frames)
    assert (await follow(elsewhere, turn, after=large["seq"] - 1))[0] == large


async def test_a_turn_is_stopped_from_another_process(tab, elsewhere):
    async with tab() as one:
        await one.ask("wait")
        turn = UUID((await one.until("token"))["turn"])
        asked = time.monotonic()
        assert not elsewhere.stop_here(turn)
        async with (await pool()).connection() as connection:
            await rows_liveness.ask_to_stop(connection, turn)
        assert (await one.turn())["status"] == "stopped"
        assert time.monotonic() - asked < 2


async def test_a_lost_notice_does_not_lose_the_stop(tab):
    async with tab() as one:
        await one.ask("wait")
        turn = UUID((await one.until("token"))["turn"])
        await in_db(lambda: Turn.objects.filter(pk=turn).update(stop_requested=True))
        assert (await one.until("turn.finished", timeout=60))["status"] == "stopped"


@transaction.atomic
def left_behind(conversation, *, seconds, process="gone-1-abcd"):
    """A running turn of a process that no longer is, as far as it came."""
    turn = Turn.objects.create(
        conversation=conversation, number=1, client_id="a", question="q", owner_process=process,
        heartbeat_at=timezone.now() - timedelta(seconds=seconds),
    )  # fmt: skip
    events = [
        ("turn.queued", {}),
        ("sources", {"sources": [source.as_event() for source in SOURCES]}),
        ("token", {"text": "Half [[c2]]"}),
        ("token", {"text": " an ans"}),
    ]
    for seq, (kind, data) in enumerate(events, start=1):
        turn.events.create(seq=seq, type=kind, at_ms=seq, data=data)
    return turn


async def test_what_a_dead_process_left_is_ended_with_its_text(conversation, elsewhere):
    turn = await in_db(lambda: left_behind(conversation, seconds=11))
    frames = await asyncio.wait_for(follow(elsewhere, turn.pk, after=2), 8)
    end = frames[-1]
    assert (end["type"], end["status"], end["last_seq"], end["seq"]) == ("turn.finished", "interrupted", 4, 10_004)
    assert end["error"]["code"] == "turn_interrupted"

    def stored():
        message = Message.objects.get(pk=end["message"])
        return message.text, list(message.citations.order_by("n").values_list("n", "document", "page", "cited"))

    text, citations = await in_db(stored)
    assert text == "Half [[c2]] an ans"
    assert citations == [(1, "Travel policy.pdf", 9, False), (2, "差旅管理办法.docx", 3, True)]


async def test_a_living_process_keeps_its_turn(conversation, elsewhere):
    """A beat of two seconds ago is life; so is the lock of a process that has not beaten for a while."""

    def two():
        from apps.conversations.services import start_conversation

        other = start_conversation(workspace=conversation.workspace, actor=conversation.owner)
        return left_behind(conversation, seconds=2), left_behind(other, seconds=5, process=elsewhere.process)

    recent, slow = await in_db(two)
    async with (await pool()).connection() as connection:
        for _ in range(50):  # until the other engine holds its lock
            cursor = await connection.execute("SELECT count(*) AS held FROM pg_locks WHERE locktype = 'advisory'")
            if (await cursor.fetchone())["held"]:
                break
            await asyncio.sleep(0.1)
        abandoned = await rows_liveness.find_abandoned(connection)
    assert recent.pk not in abandoned
    assert slow.pk not in abandoned


async def test_the_owner_has_the_last_word(tab, elsewhere):
    """A process that slept is taken for dead, wakes up, and finishes what it has."""
    async with tab() as one:
        await one.ask("say 60 60")
        turn = UUID((await one.until("token"))["turn"])
        async with (await pool()).connection() as connection:
            assert await rows_liveness.interrupt(connection, turn, error={"code": "turn_interrupted"})
        end = await one.turn()
    assert end["status"] == "succeeded"

    def stored():
        row = Turn.objects.get(pk=turn)
        return row.status, row.messages.get(role="assistant").text, row.events.count(), row.last_seq

    assert await in_db(stored) == ("succeeded", "".join(words(60)), end["seq"], end["seq"])


async def test_a_turn_of_which_its_own_process_does_not_know_is_ended_unless_it_is_new(conversation, elsewhere):
    """New: its insert is on its way back. Old: its ending could not be stored."""

    def begun(seconds):
        started = timezone.now() - timedelta(seconds=seconds)
        Turn.objects.filter(pk=turn.pk).update(started_at=started, heartbeat_at=timezone.now())

    turn = await in_db(lambda: left_behind(conversation, seconds=0, process=elsewhere.process))
    for seconds, status in ((0, "running"), (6, "interrupted")):
        await in_db(begun, seconds)
        await elsewhere._beat()
        assert await in_db(lambda: Turn.objects.get(pk=turn.pk).status) == status


async def test_a_question_waits_for_one_that_another_process_answers(tab, elsewhere, people, conversation, monkeypatch):
    """Asked in two processes at once: the second is queued, and begins where it was asked when the first is over."""
    elsewhere.run_turn = scripted.run_turn
    with monkeypatch.context() as there:
        there.setattr(asking, "ENGINE", elsewhere)
        first = await asking.start_turn(conversation, Ask(text="wait", client_id="first"), actor=people.ann)
    async with tab() as one:
        await one.ask("history")
        queued = await one.until("turn.queued")
        assert queued["waiting"] is True
        await one.send(type="stop", turn=str(first.pk))  # by way of the database: it is not here
        while (frame := await one.until("turn.finished"))["turn"] != queued["turn"]:
            pass
        assert frame["status"] == "succeeded"
        assert "Waiting. " in one.text  # what the first had said is history by now
    statuses = await in_db(lambda: list(conversation.turns.order_by("number").values_list("status", flat=True)))
    assert statuses == ["stopped", "succeeded"]
