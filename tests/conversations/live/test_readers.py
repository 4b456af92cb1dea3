"""Who may go on reading a turn: rights are looked at again while it is shown, and when it is replayed."""

import asyncio
import json
from uuid import uuid4

import httpx
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from apps.common.database import in_db
from apps.common.sessions import SessionStore
from apps.conversations import consumers, signin
from apps.conversations.engine import ENGINE
from apps.conversations.models import Conversation
from apps.workspaces.services import create_api_key
from tests.conversations.live.client import Tab
from tests.conversations.live.conftest import turns_used


async def test_a_replay_quotes_only_what_may_still_be_read(tab, people, monkeypatch):
    """The sources event holds a snippet of the text; its document is deleted, or was never there."""
    from apps.knowledge.models import Document, KnowledgeBase
    from tests.conversations import scripted

    def prepare():
        base = KnowledgeBase.objects.create(workspace=people.acme, name="Travel")
        Document.objects.create(
            pk=scripted.DOCUMENT, workspace=people.acme, knowledge_base=base, name="a", size_bytes=1, sha256="0" * 64
        )

    async def replayed(turn):
        async with tab() as again:
            await again.send(type="resume", turn=turn, after=0)
            await again.turn()
        return again.frames

    monkeypatch.setattr(ENGINE, "remember_s", 0)
    await in_db(prepare)
    async with tab() as one:
        await one.ask("cite")
        end = await one.turn()
    await asyncio.sleep(0.05)
    assert await replayed(end["turn"]) == one.frames
    await in_db(lambda: Document.objects.filter(pk=scripted.DOCUMENT).update(deleted_at=timezone.now()))
    frames = await replayed(end["turn"])
    [sources] = [frame["sources"] for frame in frames if frame["type"] == "sources"]
    assert [(item["snippet"], item["document"]) for item in sources] == [
        ("", "Travel policy.pdf"),
        ("", "差旅管理办法.docx"),
    ]
    assert [frame for frame in frames if frame["type"] != "sources"] == [
        frame for frame in one.frames if frame["type"] != "sources"
    ]
    await in_db(lambda: KnowledgeBase.objects.filter(name="Travel").delete())


async def test_a_cached_door_is_the_door(people, conversation):
    """Compiled once and bound to others, it says what the ORM's own says for them."""
    from apps.common.database import run
    from apps.conversations import rows, signin
    from apps.conversations.services import asking

    for user in (people.ann, people.bea):
        visible = Conversation.objects.visible_to(user).filter(pk=conversation.pk)
        own = await in_db(run, *rows.compiled(visible.values("id", "workspace_id", "agent_id")))
        assert len(own) == (user == people.ann)
        assert await in_db(run, *asking.ASKABLE.bound(user, conversation.pk)) == own
        assert len(await in_db(run, *signin.VISIBLE.bound(user, conversation.pk))) == len(own)


async def test_rights_are_looked_at_again_with_every_frame(server, people):
    from apps.conversations.services import delete_conversation, start_conversation
    from apps.workspaces.models import Membership, Role

    def prepare():
        return start_conversation(workspace=people.acme, actor=people.bea), people.session(people.bea)

    conversation, session = await in_db(prepare)
    async with Tab(server, conversation.pk, session=session) as one:
        await in_db(lambda: Membership.objects.filter(user=people.bea).delete())
        await one.ask("say 1")
        assert (await one.next())["code"] == "not_found"
        await one.socket.wait_closed()
        assert one.socket.close_code == 4404

    def join_and_delete_later():
        Membership.objects.create(workspace=people.acme, user=people.bea, role=Role.VIEWER)

    await in_db(join_and_delete_later)
    async with Tab(server, conversation.pk, session=session) as one:
        await in_db(lambda: delete_conversation(conversation=conversation, actor=people.bea))
        await one.ask("say 1")
        assert (await one.next())["code"] == "not_found"


async def test_a_question_looks_at_the_sign_in_in_the_statement_that_begins_it(server, people, monkeypatch):
    """No look of its own; and whatever of it has changed since the last one, nothing is begun before a new one."""
    from apps.conversations import signin
    from apps.conversations.services import start_conversation

    looks, admit = [], signin.admit

    async def counted(*args, **kwargs):
        looks.append(args)
        return await admit(*args, **kwargs)

    monkeypatch.setattr(signin, "admit", counted)
    user, password = type(people.bea).objects.filter(pk=people.bea.pk), people.bea.password

    def change(how, key):
        if how == "signed out":
            Session.objects.filter(session_key=key).delete()
        elif how == "lapsed":
            Session.objects.filter(session_key=key).update(expire_date="2020-01-01T00:00Z")
        elif how == "the session says more":
            store = SessionStore(session_key=key)
            store["seen"] = "something"
            store.save()
        elif how == "another password":
            user.update(password="!another")
        else:
            user.update(is_active=False)

    conversation = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.bea))
    for how in ("signed out", "lapsed", "the session says more", "another password", "locked"):
        key = await in_db(lambda: people.session(people.bea))
        async with Tab(server, conversation.pk, session=key) as one:
            await one.ask("say 1")
            assert (await one.turn())["status"] == "succeeded"
            assert len(looks) == 1, how  # as the socket opened
            begun = await in_db(conversation.turns.count)
            await in_db(lambda how=how, key=key: change(how, key))
            await one.ask("say 1")
            if how == "the session says more":  # they are who they were
                assert (await one.turn())["status"] == "succeeded"
            else:
                assert (await one.next())["code"] == "signed_out", how
                assert await in_db(conversation.turns.count) == begun, how
            assert len(looks) == 2, how
        looks.clear()
        await in_db(lambda: user.update(password=password, is_active=True))


async def test_a_turn_is_shown_only_while_its_reader_may_see_it(server, people, monkeypatch):
    """Without a frame of theirs, and before the next look by the clock: the database tells of what was taken away."""
    from apps.conversations.services import start_conversation
    from apps.workspaces.models import Membership, Role

    monkeypatch.setattr(consumers, "LOOK_AGAIN_S", 600)
    persons = type(people.bea).objects

    def lose(how, key, talk):
        match how:
            case "signed out":
                Session.objects.filter(session_key=key).delete()
            case "left":
                Membership.objects.filter(user=people.bea).delete()
            case "locked":
                persons.filter(pk=people.bea.pk).update(is_active=False)
            case "another password":
                persons.filter(pk=people.bea.pk).update(password="!another")
            case "the conversation went":
                Conversation.objects.filter(pk=talk.pk).update(deleted_at=timezone.now())

    def back():
        persons.filter(pk=people.bea.pk).update(is_active=True, password=people.bea.password)
        Membership.objects.get_or_create(user=people.bea, workspace=people.acme, defaults={"role": Role.VIEWER})

    ways = {"signed out": 4401, "left": 4404, "locked": 4401, "another password": 4401, "the conversation went": 4404}
    for how, code in ways.items():
        await in_db(back)
        conversation = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.bea))
        key = await in_db(lambda: people.session(people.bea))
        async with Tab(server, conversation.pk, session=key) as one:
            await one.ask("say 400 20")
            await one.until("token")
            await in_db(lambda how=how, key=key, talk=conversation: lose(how, key, talk))
            known = len(one.frames)
            await one.until("error")
            await one.socket.wait_closed()
            assert one.socket.close_code == code, how
            assert len(one.frames) - known < 60, how  # three seconds of twenty, on a busy machine; most often one
    await in_db(back)


async def test_a_right_that_ends_by_the_clock_is_looked_for(server, people, monkeypatch):
    from apps.conversations.services import start_conversation

    monkeypatch.setattr(consumers, "LOOK_AGAIN_S", 0.2)
    conversation = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.bea))
    key = await in_db(lambda: people.session(people.bea))
    async with Tab(server, conversation.pk, session=key) as one:
        await one.ask("say 200 20")
        await one.until("token")
        await in_db(lambda: Session.objects.filter(session_key=key).update(expire_date="2020-01-01T00:00Z"))
        assert (await one.until("error"))["code"] == "signed_out"


async def test_what_is_taken_from_others_costs_one_look(tab, people, monkeypatch):
    """No look a token; one for each time that something was taken away, and the stream goes on."""
    looks, again = [], signin.admit_again

    async def counted(*args, **kwargs):
        looks.append(args)
        return await again(*args, **kwargs)

    def take():
        with transaction.atomic():
            for _ in range(3):
                Session.objects.filter(session_key=people.session(people.bea)).delete()

    monkeypatch.setattr(consumers, "LOOK_AGAIN_S", 600)
    monkeypatch.setattr(signin, "admit_again", counted)
    async with tab() as one:
        await one.ask("say 60 20")
        await one.until("token")
        opened = len(looks)
        seen = ENGINE.withdrawals
        await in_db(take)
        assert (await one.turn())["status"] == "succeeded"
        assert ENGINE.withdrawals == seen + 1
        assert len(looks) == opened + 1


async def test_a_source_that_was_taken_away_meanwhile_is_not_quoted(tab, server, people):
    """In the frame itself, while the answer streams: by socket and by the API's stream of events."""
    from apps.knowledge.models import Document, KnowledgeBase
    from tests.conversations import scripted

    def prepare():
        base = KnowledgeBase.objects.create(workspace=people.acme, name="Travel")
        Document.objects.create(
            pk=scripted.DOCUMENT, workspace=people.acme, knowledge_base=base, name="a", size_bytes=1, sha256="0" * 64
        )

    def take():
        Document.objects.filter(pk=scripted.DOCUMENT).update(deleted_at=timezone.now())

    async def streamed(turn_id, began):
        head = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}
        address, found = f"http://127.0.0.1:{server.port}/api/v1/turns/{turn_id}/events", []
        async with httpx.AsyncClient(timeout=60) as client, client.stream("GET", address, headers=head) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    found.append(json.loads(line[6:]))
                    began.set()
        return found

    def snippets(events):
        return [[item["snippet"] for item in event["sources"]] for event in events if event["type"] == "sources"]

    await in_db(prepare)
    _key, secret = await in_db(lambda: a_key(people, "conversations:read", "knowledge:read"))
    for taken in (False, True):
        async with tab() as one:
            await one.ask("late 30")
            first = await one.until("token")
            began = asyncio.Event()
            stream = asyncio.create_task(streamed(first["turn"], began))
            await began.wait()
            if taken:
                await in_db(take)
            await one.turn()
        [shown], [sent] = snippets(one.frames), snippets(await stream)
        assert shown == sent == (["", ""] if taken else [source.text for source in scripted.SOURCES]), taken
    await in_db(lambda: Document.objects.filter(pk=scripted.DOCUMENT).update(deleted_at=None))
    async with tab() as one:
        await one.ask("cite")
        turn = (await one.turn())["turn"]
    await in_db(take)
    async with tab() as again:  # its frames are in memory still
        await again.send(type="resume", turn=turn, after=0)
        await again.turn()
    assert snippets(one.frames) + snippets(again.frames) == [[source.text for source in scripted.SOURCES], ["", ""]]
    await in_db(lambda: KnowledgeBase.objects.filter(name="Travel").delete())


async def test_a_window_that_was_left_open_shows_no_later_turn(server, people, monkeypatch):
    from apps.conversations.services import start_conversation

    monkeypatch.setattr(consumers, "LOOK_AGAIN_S", 0.0)
    conversation = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.bea))
    elsewhere, here = await in_db(lambda: [people.session(people.bea) for _ in range(2)])
    async with Tab(server, conversation.pk, session=elsewhere) as left_open:
        await left_open.send(type="ping")
        await left_open.next()
        await in_db(lambda: Session.objects.filter(session_key=elsewhere).delete())
        async with Tab(server, conversation.pk, session=here) as one:
            await one.ask("say 5")
            assert (await one.turn())["status"] == "succeeded"
        assert (await left_open.next())["code"] == "signed_out"
        await left_open.socket.wait_closed()
    assert [frame["type"] for frame in left_open.frames] == ["pong", "error"]


async def test_a_key_that_only_reads_asks_and_stops_nothing(server, people, conversation):
    _key, secret = await in_db(lambda: a_key(people, "conversations:read"))
    used = await in_db(lambda: turns_used(people))
    async with Tab(server, conversation.pk, headers={"Authorization": f"Bearer {secret}"}) as one:
        for frame in ({"type": "ask", "text": "say 1", "client_id": uuid4().hex}, {"type": "stop"}):
            await one.send(**frame)
            assert (await one.next())["code"] == "not_allowed"
    assert await in_db(lambda: (turns_used(people), conversation.turns.count())) == (used, 0)


async def test_a_key_reads_by_its_own_rights_what_its_person_asked(server, tab, people, conversation, monkeypatch):
    seen = []
    watch_rows = ENGINE.news.watch_rows

    def watched(turn_id, *, after, reader):
        seen.append(reader.kind)
        return watch_rows(turn_id, after=after, reader=reader)

    monkeypatch.setattr(ENGINE.news, "watch_rows", watched)
    _key, secret = await in_db(lambda: a_key(people, "conversations:read"))
    async with tab() as one, Tab(server, conversation.pk, headers={"Authorization": f"Bearer {secret}"}) as two:
        await two.send(type="ping")
        await two.next()
        await one.ask("cite")
        await one.turn()
        end = await two.turn()
    assert (end["status"], seen) == ("succeeded", ["key"])
    [quoted] = [frame["sources"] for frame in two.frames if frame["type"] == "sources"]
    assert {source["snippet"] for source in quoted} == {""}


def a_key(people, *scopes):
    return create_api_key(name="k", workspace=people.acme, actor=people.ann, scopes=list(scopes))
