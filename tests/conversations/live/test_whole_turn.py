"""The socket with the product's own runner behind it, and a scripted vendor as the model."""

import asyncio
import json

import pytest

from apps.common.database import in_db
from apps.conversations.engine import ENGINE
from apps.conversations.frames import EVENTS
from apps.conversations.models import Message
from apps.models import ledger
from apps.models.models import UsageRecord
from tests.conversations.live.client import Tab
from tests.vendor import Reply
from tests.vendor.plugin import CANARY


@pytest.fixture
def tab(server, session, conversation, scripted_model, monkeypatch):
    """Open a tab whose turns the agents' runner answers."""
    monkeypatch.setattr(ENGINE, "run_turn", None)
    return lambda: Tab(server, conversation.pk, session=session)


async def test_every_frame_is_in_the_table_and_the_tokens_are_the_answer(tab, scripted_model):
    scripted_model.script([Reply("Hello! **How** can I help?\n\nAsk me anything.")])
    async with tab() as one:
        await one.ask("Hello")
        end = await one.turn()
    assert (end["status"], end["error"]) == ("succeeded", None)
    assert [frame["seq"] for frame in one.frames] == list(range(1, len(one.frames) + 1))
    for frame in one.frames:
        assert set(EVENTS[frame["type"]]) <= set(frame), frame
    started = next(frame for frame in one.frames if frame["type"] == "turn.started")
    assert started["model"] == "openai_compatible:scripted-chat"
    assert started["agent"]
    answer = await in_db(lambda: Message.objects.get(pk=end["message"]).text)
    assert one.text == answer == "Hello! **How** can I help?\n\nAsk me anything."
    assert [frame["html"] for frame in one.frames if frame["type"] == "block"] == [
        "<p>Hello! <strong>How</strong> can I help?</p>\n",
        "<p>Ask me anything.</p>\n",
    ]


async def test_stop_hangs_up_on_the_vendor_and_the_next_turn_works(tab, scripted_model):
    scripted_model.script([Reply("word " * 400, per_second=40), Reply("Fine.")])
    async with tab() as one:
        await one.ask("Hello")
        turn = (await one.until("token"))["turn"]
        await one.send(type="stop", turn=turn)
        end = await one.turn()
        assert end["status"] == "stopped"
        assert await in_db(scripted_model.wait_closed)
        assert one.text == await in_db(lambda: Message.objects.get(pk=end["message"]).text)
        one.frames.clear()
        await one.ask("Hello again")
        assert (await one.turn())["status"] == "succeeded"
        assert one.text == "Fine."


async def test_a_vendor_that_breaks_off_leaves_a_failed_turn_with_its_text(tab, scripted_model):
    scripted_model.script([Reply("one two three four five six", cut_after=3)])
    async with tab() as one:
        await one.ask("Hello")
        end = await one.turn()
    assert end["status"] == "failed"
    assert end["error"]["code"]
    assert one.text
    assert one.text == await in_db(lambda: Message.objects.get(pk=end["message"]).text)


async def test_a_vendor_that_repeats_the_key_puts_it_into_no_frame(tab, scripted_model):
    echo = f"Incorrect API key provided: {CANARY}. Authorization: Bearer {CANARY}"
    scripted_model.script([Reply(status=401, error=echo), Reply("a b c d", error_after=2, error=echo)])
    async with tab() as one:
        for _ in range(2):
            await one.ask("Hello")
            assert (await one.turn())["status"] == "failed"
    assert scripted_model.requests[-1].headers["Authorization"] == f"Bearer {CANARY}"
    assert "Incorrect API key" in json.dumps(one.frames)
    assert CANARY not in json.dumps(one.frames)


async def test_a_turns_calls_are_in_the_ledger_before_its_end_is_told(tab, scripted_model, conversation, monkeypatch):
    """As if the process died with the last frame: what is written later does not count. What failed comes next time."""

    def late():
        raise AssertionError("the ledger was left to be written behind the answer")

    monkeypatch.setattr(ledger, "flush", late)
    scripted_model.script([Reply("Hello!"), Reply("Hello again!")])
    async with tab() as one:
        await one.ask("Hello")
        end = await one.turn()
        rows = await in_db(_booked, conversation.pk)
        assert [(row.purpose, row.model, row.outcome) for row in rows][-1:] == [
            ("answer", "openai_compatible:scripted-chat", "ok")
        ]
        assert {(str(row.turn_id), row.workspace_id, row.user_id) for row in rows} == {
            (end["turn"], conversation.workspace_id, conversation.owner_id)
        }
        with monkeypatch.context() as broken:
            broken.setattr(ledger, "WRITE", "SELECT 1 / 0, %s::json")  # no call may be lost, no answer held up for it
            broken.setattr(ledger, "flush", lambda: 0)
            await one.ask("Hello")
            assert (await one.turn())["status"] == "succeeded"
            assert len(await in_db(_booked, conversation.pk)) == len(rows)
        for _ in range(100):
            if len(found := await in_db(_booked, conversation.pk)) > len(rows):
                break
            await asyncio.sleep(0.05)
        assert found[-1].tokens_in == 10
        assert len(found) == 2 * len(rows)  # each once


def _booked(conversation_id):
    return list(UsageRecord.objects.filter(conversation_id=conversation_id).order_by("pk"))
