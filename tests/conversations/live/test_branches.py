"""Questions that wait, versions of questions and of answers, and how many of all that one person may have."""

import asyncio
import json
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from apps.common.database import in_db
from apps.conversations import consumers, engine
from apps.conversations.models import Conversation, Turn
from tests.conversations.live.client import Tab

pytestmark = [pytest.mark.xdist_group("live-branches")]


async def turns_of(conversation):
    return await in_db(lambda: list(Turn.objects.filter(conversation=conversation).order_by("number")))


async def test_a_second_question_is_queued_and_begins_when_the_first_is_over(tab, conversation):
    async with tab() as one, tab() as two:
        await one.ask("wait")
        first = (await one.until("token"))["turn"]
        await two.ask("history")
        queued = await two.until("turn.queued")
        while queued["turn"] == first:
            queued = await two.until("turn.queued")
        assert queued["waiting"] is True
        assert queued["parent"] == first
        second = await in_db(lambda: Turn.objects.get(pk=queued["turn"]))
        assert second.status == "queued"
        await one.send(type="stop")
        end = await two.turn()
        while end["turn"] == first:
            end = await two.turn()
        assert end["status"] == "succeeded"
        mine = [frame for frame in two.frames if frame.get("turn") == queued["turn"]]
        assert [frame["seq"] for frame in mine] == list(range(1, len(mine) + 1))
        said = "".join(frame["text"] for frame in mine if frame["type"] == "token")
        assert [message["content"] for message in json.loads(said)] == ["wait", "Waiting. "]
    assert [turn.status for turn in await turns_of(conversation)] == ["stopped", "succeeded"]


async def test_a_question_that_waits_is_withdrawn_by_stopping_it(tab, conversation):
    async with tab() as one:
        await one.ask("wait")
        first = (await one.until("token"))["turn"]
        await one.ask("say 3")
        queued = await one.until("turn.queued")
        await one.send(type="stop", turn=queued["turn"])
        end = await one.turn()
        assert (end["turn"], end["status"]) == (queued["turn"], "stopped")
        await one.send(type="stop", turn=first)
        assert (await one.turn())["turn"] == first
    assert [turn.status for turn in await turns_of(conversation)] == ["stopped", "stopped"]


async def test_only_so_many_questions_wait(tab, conversation):
    async with tab() as one:
        await one.ask("wait")
        await one.until("token")
        for _ in range(5):
            await one.ask("say 1")
            await one.until("turn.queued")
        await one.ask("say 1")
        error = await one.until("error")
        assert (error["code"], error["details"]) == ("too_many_waiting", {"limit": 5})
        await one.send(type="stop")
        for _ in range(6):
            await one.turn()
    turns = await turns_of(conversation)
    assert [turn.status for turn in turns] == ["stopped", *["succeeded"] * 5]


async def test_an_edited_question_begins_a_branch_and_knows_nothing_of_the_other(tab, conversation):
    async with tab() as one:
        for text in ("say 1", "say 2", "say 3"):
            await one.ask(text)
            await one.turn()
        first, second, third = await turns_of(conversation)
        assert (second.parent_id, third.parent_id) == (first.pk, second.pk)
        one.frames.clear()
        await one.ask("history", parent=str(first.pk))
        queued = await one.until("turn.queued")
        assert queued["parent"] == str(first.pk)
        await one.turn()
        assert [message["content"] for message in json.loads(one.text)][::2] == ["say 1"]
        one.frames.clear()
        await one.ask("history")
        await one.turn()
        assert [message["content"] for message in json.loads(one.text)][::2] == ["say 1", "history"]
        one.frames.clear()
        await one.ask("history", parent=str(conversation.pk))
        assert (await one.until("turn.queued"))["parent"] is None
        await one.turn()
        assert json.loads(one.text) == []


async def test_another_answer_takes_the_question_and_its_place(tab, conversation):
    async with tab() as one:
        await one.ask("say 1")
        await one.turn()
        await one.ask("say 2", language="zh-hans")
        await one.turn()
        first, second = await turns_of(conversation)
        await one.ask("", regenerate=str(second.pk))
        queued = await one.until("turn.queued")
        assert (queued["question"], queued["parent"]) == ("say 2", str(first.pk))
        await one.turn()
    third = (await turns_of(conversation))[2]
    assert (third.question, third.parent_id) == (second.question, second.parent_id)


@pytest.mark.parametrize("field", ["parent", "regenerate", "model", "attachments"])
async def test_what_is_named_must_be_there(tab, people, field):
    theirs = await in_db(lambda: Conversation.objects.create(workspace=people.acme, owner=people.bea))
    other = await in_db(
        lambda: Turn.objects.create(
            conversation=theirs, number=1, client_id=uuid4().hex, status="succeeded", question="?"
        )
    )
    async with tab() as one:
        for value in (str(other.pk), str(uuid4())):
            await one.ask("say 1", **{field: [value] if field == "attachments" else value})
            error = await one.until("error")
            assert (error["code"], error["details"]) == ("not_found", {"field": field})
        await one.ask("say 1", **{field: "x"})
        assert (await one.until("error"))["code"] == "invalid_frame"
        await one.ask("say 1")
        assert (await one.turn())["status"] == "succeeded"


async def test_a_model_is_chosen_for_one_turn(tab, people, conversation, monkeypatch):
    from apps.models.models import ModelConfig
    from tests.conversations import scripted

    asked = []

    async def run_turn(request, *, events, stop):
        asked.append(request.options.model)
        return await scripted.run_turn(request, events=events, stop=stop)

    monkeypatch.setattr(engine.ENGINE, "run_turn", run_turn)
    model = await in_db(
        lambda: ModelConfig.objects.create(
            workspace=people.acme, kind="chat", name=uuid4().hex, base_url="http://127.0.0.1:9/v1"
        )
    )
    async with tab() as one:
        await one.ask("say 1", model=str(model.pk))
        assert (await one.turn())["status"] == "succeeded"
        await in_db(lambda: ModelConfig.objects.filter(pk=model.pk).update(enabled=False))
        await one.ask("say 1", model=str(model.pk))
        assert (await one.until("error"))["details"] == {"field": "model"}
    assert asked == [model.pk]
    [turn] = await turns_of(conversation)
    assert turn.options["model"] == str(model.pk)


async def test_a_person_has_so_many_turns_and_sockets_and_no_more(tab, server, people, session, monkeypatch):
    monkeypatch.setattr(engine, "TURNS_A_PERSON", 2)
    monkeypatch.setattr(consumers, "SOCKETS_A_PERSON", 3)
    talks = await in_db(
        lambda: [Conversation.objects.create(workspace=people.acme, owner=people.ann) for _ in range(3)]
    )
    async with AsyncExitStack() as stack:
        tabs = [await stack.enter_async_context(Tab(server, talk.pk, session=session)) for talk in talks]
        for one in tabs[:2]:
            await one.ask("wait")
            await one.until("token")
        await tabs[2].ask("say 1")
        error = await tabs[2].until("error")
        assert (error["code"], error["details"], error["retryable"]) == ("too_many_turns", {"limit": 2}, True)
        async with tab() as fourth:
            assert (await fourth.until("error"))["code"] == "too_many_sockets"
            await fourth.socket.wait_closed()
            assert fourth.socket.close_code == 4429
        for one in tabs[:2]:
            await one.send(type="stop")
            await one.turn()
        await tabs[2].ask("say 1")
        assert (await tabs[2].turn())["status"] == "succeeded"
    async with asyncio.timeout(60):
        while f"asker:{people.ann.pk}" in consumers._open:
            await asyncio.sleep(0.05)
    async with tab() as one:
        await one.ask("say 1")
        assert (await one.turn())["status"] == "succeeded"


async def test_a_turn_is_given_the_files_of_its_branch(tab, people, conversation, monkeypatch):
    from django.core.files.base import ContentFile

    from apps.conversations.models import Attachment
    from tests.conversations import scripted

    given = []

    async def run_turn(request, *, events, stop):
        given.append(
            [
                (one.number, one.name, one.characters, await one.text(), await one.content())
                for one in request.attachments
            ]
        )
        return await scripted.run_turn(request, events=events, stop=stop)

    def attach(name, owner=people.ann):
        row = Attachment(
            workspace=people.acme, owner=owner, name=name, kind="document", media_type="text/plain", size_bytes=1,
            text=f"text of {name}",
        )  # fmt: skip
        row.file.save(name, ContentFile(name.encode()), save=False)
        row.save(force_insert=True)
        return str(row.pk)

    monkeypatch.setattr(engine.ENGINE, "run_turn", run_turn)
    one, two, theirs = await in_db(lambda: [attach("one"), attach("two"), attach("three", people.bea)])
    async with tab() as tab_:
        await tab_.ask("say 1", attachments=[one, one])
        queued = await tab_.until("turn.queued")
        assert queued["attachments"] == [{"id": one, "name": "one", "kind": "document"}]
        await tab_.turn()
        first = queued["turn"]
        await tab_.ask("say 1", attachments=[two])
        await tab_.turn()
        await tab_.ask("say 1", parent=first)
        await tab_.turn()
        await tab_.ask("", regenerate=first)
        assert (await tab_.until("turn.queued"))["attachments"] == [{"id": one, "name": "one", "kind": "document"}]
        await tab_.turn()
        await tab_.ask("say 1", attachments=[theirs])
        assert (await tab_.until("error"))["details"] == {"field": "attachments"}
        await in_db(lambda: Attachment.objects.filter(pk=one).delete())
        await tab_.ask("say 1", parent=first)
        assert (await tab_.turn())["type"] == "turn.finished"
    whole = {name: (name, len(f"text of {name}"), f"text of {name}", name.encode()) for name in ("one", "two")}
    assert given == [
        [(1, *whole["one"])],
        [(1, *whole["one"]), (2, *whole["two"])],
        [(1, *whole["one"])],
        [(4, *whole["one"])],
        [],
    ]


async def test_stop_reaches_a_tool_that_does_not_listen_within_a_second(tab, conversation, monkeypatch):
    """The tool is cancelled, not waited for: less than a second after the word, by the engine's own patience."""
    from apps.agents.turn import TurnOutcome

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def run_turn(request, *, events, stop):
        events.emit("tool.started", {"call_id": "1", "name": "web_fetch", "arguments": {}})
        events.token("Half. ")
        try:
            await asyncio.sleep(3600)
        finally:
            loop.call_soon_threadsafe(ended.set)
        return TurnOutcome("succeeded", "")

    monkeypatch.setattr(engine.ENGINE, "run_turn", run_turn)
    assert engine.STOP_PATIENCE_S < 1
    async with tab() as one:
        await one.ask("fetch")
        await one.until("token")
        await one.send(type="stop")
        assert (await one.turn())["status"] == "stopped"
        async with asyncio.timeout(60):
            await ended.wait()
        assert one.text == "Half. "
        await one.ask("again")
        await one.until("token")
        await one.send(type="stop")
        assert (await one.turn())["status"] == "stopped"
    assert [turn.status for turn in await turns_of(conversation)] == ["stopped", "stopped"]
