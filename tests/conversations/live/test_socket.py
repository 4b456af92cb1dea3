"""/ws/conversations/<uuid>/ over a real server, with a scripted runner behind the engine: turns and their frames."""

import asyncio
import json
import random
import time
from uuid import UUID

import pytest
from django.db import IntegrityError

from apps.common.database import in_db
from apps.conversations.engine import ENGINE
from apps.conversations.frames import EVENTS
from apps.conversations.models import Citation, Conversation, Message, Turn, TurnEvent
from apps.conversations.rendering import anchor_of, render_markdown
from tests.conversations.live.client import numbered
from tests.conversations.scripted import ANSWER, words
from tests.vendor import Reply


async def stored_answer(turn):
    return await in_db(lambda: Message.objects.get(turn=turn, role="assistant").text)


async def test_a_turn_streams_and_is_stored(tab, conversation):
    async with tab() as one:
        await one.ask("cite  please\nand\u202e thank you")
        end = await one.turn()
    frames = one.frames
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    assert [frame["type"] for frame in frames[:2]] == ["turn.queued", "turn.started"]
    for frame in frames:
        assert set(EVENTS[frame["type"]]) <= set(frame), frame["type"]
        assert {"turn", "at_ms"} <= set(frame)
    assert (end["status"], end["error"], end["last_seq"]) == ("succeeded", None, len(frames))
    assert one.text == ANSWER == await stored_answer(end["turn"])

    def rows():
        turn = Turn.objects.get(pk=end["turn"])
        return turn, list(Citation.objects.filter(message_id=end["message"]).order_by("n")), turn.events.count()

    turn, citations, events = await in_db(rows)
    assert (turn.status, turn.last_seq, events, turn.model) == ("succeeded", len(frames), len(frames), "scripted")
    assert turn.usage == {"prompt": 3}
    assert [(c.n, c.page, c.cited, c.text) for c in citations] == [
        (1, 9, True, "Economy class is booked."), (2, 3, True, "住宿标准为每晚 600 元。"),
    ]  # fmt: skip
    assert (await in_db(lambda: Conversation.objects.get(pk=conversation.pk))).title == "cite please and…"


async def test_live_blocks_are_the_reloaded_rendering(tab):
    async with tab() as one:
        await one.ask("cite")
        end = await one.turn()
    citations = await in_db(lambda: list(Citation.objects.filter(message_id=end["message"])))
    turn = await in_db(lambda: Turn.objects.get(pk=end["turn"]))
    live = "".join(frame["html"] for frame in one.frames if frame["type"] == "block")
    assert live == render_markdown(ANSWER, citations, anchor=anchor_of(turn.pk))
    assert live.count('class="cite"') == 3
    assert [f["index"] for f in one.frames if f["type"] == "block"] == [0, 1, 2, 3]


async def test_reconnects_lose_and_double_nothing(tab):
    """Cut the socket at random points; what all the sockets got, in order, is the stored answer."""
    rng = random.Random(7)
    frames, turn = [], None
    async with tab() as one:
        await one.ask("say 120 150")
        while not one.text:
            turn = (await one.next())["turn"]
        frames += numbered(one.frames)
    while frames[-1]["type"] != "turn.finished":
        async with tab() as again:
            await again.send(type="resume", turn=turn, after=frames[-1]["seq"])
            for _ in range(rng.randint(1, 40)):
                if (await again.next())["type"] == "turn.finished":
                    break
        frames += again.frames
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    text = "".join(frame["text"] for frame in frames if frame["type"] == "token")
    assert text == "".join(words(120)) == await stored_answer(turn)


async def test_a_finished_turn_is_replayed_from_its_rows(tab, monkeypatch):
    monkeypatch.setattr(ENGINE, "remember_s", 0)
    async with tab() as one:
        await one.ask("say 30")
        end = await one.turn()
    await asyncio.sleep(0.05)
    async with tab() as again:
        await again.send(type="resume", turn=end["turn"], after=0)
        await again.turn()
    assert again.frames == one.frames


async def test_the_same_client_id_is_the_same_turn(tab, conversation):
    async with tab() as one, tab() as two:
        await asyncio.gather(one.ask("say 20 100", "once"), two.ask("say 20 100", "once"), one.ask("say 20", "once"))
        ends = [await one.turn(), await two.turn()]
    assert ends[0] == ends[1]
    assert one.frames == two.frames
    assert await in_db(lambda: Turn.objects.filter(conversation=conversation).count()) == 1
    async with tab() as late:
        await late.ask("say 20 100", "once")
        await late.turn()
    assert late.frames == one.frames


async def test_two_tabs_see_the_same_and_either_stops(tab):
    async with tab() as one, tab() as two:
        await one.ask("say 5000 100")
        turn = (await one.until("token"))["turn"]
        await two.send(type="resume", turn=turn, after=0)
        await two.until("token")
        asked = time.monotonic()
        await two.send(type="stop", turn=turn)
        assert (await one.turn())["status"] == "stopped"
        assert time.monotonic() - asked < 2
        await two.turn()
    assert one.frames == two.frames
    assert one.text == await stored_answer(turn)


async def test_a_runner_that_does_not_listen_is_cancelled(tab):
    async with tab() as one:
        await one.ask("deaf")
        turn = (await one.until("token"))["turn"]
        asked = time.monotonic()
        await one.send(type="stop", turn=turn)
        assert (await one.turn())["status"] == "stopped"
        assert time.monotonic() - asked < 2
    assert await stored_answer(turn) == "Deaf. "


async def test_stop_closes_the_upstream(tab, vendor, settings):
    settings.OPENAI_BASE_URL = vendor.url
    vendor.script([Reply("word " * 200, per_second=20)])
    async with tab() as one:
        await one.ask("relay")
        turn = (await one.until("token"))["turn"]
        await one.send(type="stop", turn=turn)
        assert (await one.turn())["status"] == "stopped"
        assert await in_db(vendor.wait_closed)
    assert one.text == await stored_answer(turn)


async def test_a_closed_tab_stops_nothing(tab):
    async with tab() as one:
        await one.ask("say 40 200")
        turn = (await one.until("token"))["turn"]
    async with tab() as two:
        await two.send(type="resume", turn=turn, after=0)
        assert (await two.turn())["status"] == "succeeded"
    assert two.text == "".join(words(40))


async def test_a_crash_keeps_what_was_written(tab):
    async with tab() as one:
        await one.ask("crash")
        end = await one.turn()
    assert (end["status"], end["error"]["code"]) == ("failed", "turn_crashed")
    assert await stored_answer(end["turn"]) == "Half an ans"


def erase(rows):
    """Delete rows that the event writer adds to meanwhile."""
    for _ in range(20):
        try:
            assert rows.delete()[0]
            return
        except IntegrityError:
            continue
    pytest.fail("could not erase")


async def test_a_turn_that_the_database_lost_is_put_back(tab, conversation):
    """As after a crash of its server before the row was on the disk."""
    async with tab() as one:
        await one.ask("say 60 20")
        await one.until("token")
        await in_db(lambda: erase(Turn.objects.filter(conversation=conversation)))
        end = await one.turn()
    assert end["status"] == "succeeded"
    assert one.text == "".join(words(60)) == await stored_answer(end["turn"])

    def stored():
        turn = Turn.objects.get(pk=end["turn"])
        return turn.status, turn.question, turn.events.count(), turn.messages.get(role="user").text

    assert await in_db(stored) == ("succeeded", "say 60 20", end["seq"], "say 60 20")


async def test_a_conversation_erased_during_its_turn_ends_it(tab, conversation):
    async with tab() as one:
        await one.ask("say 60 20")
        first = await one.until("token")
        await in_db(lambda: erase(Conversation.objects.filter(pk=conversation.pk)))
        assert (await one.until("error"))["code"] == "not_found"
        await one.socket.wait_closed()
    async with asyncio.timeout(30):
        while UUID(first["turn"]) in ENGINE._running:
            await asyncio.sleep(0.05)
    assert not await in_db(Turn.objects.filter(pk=first["turn"]).exists)


async def test_nul_and_half_characters_of_a_model_go_nowhere(tab):
    async with tab() as one:
        await one.ask("nul")
        end = await one.turn()
    assert end["status"] == "succeeded"
    assert one.text == "abc" == await stored_answer(end["turn"])
    assert await in_db(lambda: TurnEvent.objects.filter(turn=end["turn"]).count()) == end["seq"]


async def test_history_is_what_was_said(tab):
    async with tab() as one:
        for question in ("say 2", "wait"):
            await one.ask(question)
            if question == "wait":
                await one.until("token")
                await one.send(type="stop")
            await one.turn()
        one.frames.clear()
        await one.ask("history")
        await one.turn()
    assert [{"role": m["role"], "content": m["content"]} for m in json.loads(one.text)] == [
        {"role": "user", "content": "say 2"},
        {"role": "assistant", "content": "".join(words(2))},
        {"role": "user", "content": "wait"},
        {"role": "assistant", "content": "Waiting. "},
    ]
