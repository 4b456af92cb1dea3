"""/ws/conversations/<uuid>/ over a real server, with a scripted runner behind the engine."""

import asyncio
import json
import random
import time
from uuid import uuid4

import pytest
from django.contrib.sessions.models import Session
from django.db import IntegrityError
from django.db.models import F
from django.utils import timezone

from apps.common import database
from apps.common.database import in_db
from apps.conversations import consumers
from apps.conversations.engine import ENGINE
from apps.conversations.frames import EVENTS
from apps.conversations.models import Citation, Conversation, Message, Turn, TurnEvent
from apps.conversations.rendering import anchor_of, render_markdown
from apps.workspaces.models import AuditEvent, Quota
from apps.workspaces.services import create_api_key
from tests.conversations.live.client import Tab, numbered
from tests.conversations.scripted import ANSWER, words
from tests.vendor import Reply


@pytest.fixture
def tab(server, session, conversation):
    """Open a tab on this test's conversation."""
    return lambda **options: Tab(server, conversation.pk, **{"session": session, **options})


def in_thread(function):
    return in_db(function)


async def stored_answer(turn):
    return await in_thread(lambda: Message.objects.get(turn=turn, role="assistant").text)


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

    turn, citations, events = await in_thread(rows)
    assert (turn.status, turn.last_seq, events, turn.model) == ("succeeded", len(frames), len(frames), "scripted")
    assert turn.usage == {"prompt": 3}
    assert [(c.n, c.page, c.cited, c.text) for c in citations] == [
        (1, 9, True, "Economy class is booked."), (2, 3, True, "住宿标准为每晚 600 元。"),
    ]  # fmt: skip
    assert (await in_thread(lambda: Conversation.objects.get(pk=conversation.pk))).title == "cite please and thank you"


async def test_live_blocks_are_the_reloaded_rendering(tab):
    async with tab() as one:
        await one.ask("cite")
        end = await one.turn()
    citations = await in_thread(lambda: list(Citation.objects.filter(message_id=end["message"])))
    turn = await in_thread(lambda: Turn.objects.get(pk=end["turn"]))
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
    await in_thread(prepare)
    async with tab() as one:
        await one.ask("cite")
        end = await one.turn()
    await asyncio.sleep(0.05)
    assert await replayed(end["turn"]) == one.frames
    await in_thread(lambda: Document.objects.filter(pk=scripted.DOCUMENT).update(deleted_at=timezone.now()))
    frames = await replayed(end["turn"])
    [sources] = [frame["sources"] for frame in frames if frame["type"] == "sources"]
    assert [(item["snippet"], item["document"]) for item in sources] == [
        ("", "Travel policy.pdf"),
        ("", "差旅管理办法.docx"),
    ]
    assert [frame for frame in frames if frame["type"] != "sources"] == [
        frame for frame in one.frames if frame["type"] != "sources"
    ]
    await in_thread(lambda: KnowledgeBase.objects.filter(name="Travel").delete())


async def test_the_same_client_id_is_the_same_turn(tab, conversation):
    async with tab() as one, tab() as two:
        await asyncio.gather(one.ask("say 20 100", "once"), two.ask("say 20 100", "once"), one.ask("say 20", "once"))
        ends = [await one.turn(), await two.turn()]
    assert ends[0] == ends[1]
    assert one.frames == two.frames
    assert await in_thread(lambda: Turn.objects.filter(conversation=conversation).count()) == 1
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
        assert await in_thread(vendor.wait_closed)
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
        await one.ask("say 60 100")
        await one.until("token")
        await in_thread(lambda: erase(Turn.objects.filter(conversation=conversation)))
        end = await one.turn()
    assert end["status"] == "succeeded"
    assert one.text == "".join(words(60)) == await stored_answer(end["turn"])

    def stored():
        turn = Turn.objects.get(pk=end["turn"])
        return turn.status, turn.question, turn.events.count(), turn.messages.get(role="user").text

    assert await in_thread(stored) == ("succeeded", "say 60 100", end["seq"], "say 60 100")


async def test_a_conversation_erased_during_its_turn_ends_it(tab, conversation):
    async with tab() as one:
        await one.ask("say 60 100")
        await one.until("token")
        await in_thread(lambda: erase(Conversation.objects.filter(pk=conversation.pk)))
        end = await one.turn()
    assert (end["status"], end["error"]["code"]) == ("failed", "answer_not_stored")


async def test_a_cached_door_is_the_door(people, conversation):
    """Compiled once and bound to others, it is what the ORM compiles for them."""
    from apps.conversations import rows, signin
    from apps.conversations.services import asking

    for user in (people.ann, people.bea):
        visible = Conversation.objects.visible_to(user).filter(pk=conversation.pk)
        assert signin.VISIBLE.bound(user, conversation.pk) == rows.compiled(visible.values())
        assert asking.ASKABLE.bound(user, conversation.pk) == rows.compiled(
            visible.values("id", "workspace_id", "agent_id")
        )


async def test_nul_and_half_characters_of_a_model_go_nowhere(tab):
    async with tab() as one:
        await one.ask("nul")
        end = await one.turn()
    assert end["status"] == "succeeded"
    assert one.text == "abc" == await stored_answer(end["turn"])
    assert await in_thread(lambda: TurnEvent.objects.filter(turn=end["turn"]).count()) == end["seq"]


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


# Refusals

NOBODYS = "99999999-9999-4999-8999-999999999999"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("no json", "invalid_frame"),
        ("[]", "invalid_frame"),
        ("null", "invalid_frame"),
        ("{}", "invalid_frame"),
        ('{"type":"sing"}', "invalid_frame"),
        ('{"type":"ask"}', "invalid_frame"),
        ('{"type":"ask","text":7,"client_id":"a"}', "invalid_frame"),
        ('{"type":"ask","text":"x","client_id":""}', "invalid_frame"),
        ('{"type":"ask","text":"x","client_id":"a","knowledge_bases":["no"]}', "invalid_frame"),
        ('{"type":"ask","text":"x","client_id":"a","web":"yes"}', "invalid_frame"),
        ('{"type":"ask","text":"x","client_id":"a","language":"../etc"}', "invalid_frame"),
        ('{"type":"ask","text":"x","client_id":"a","skills":["s"]}', "unsupported_option"),
        ('{"type":"ask","text":"  \\n","client_id":"a"}', "empty_question"),
        ('{"type":"ask","text":"a\\u0000b","client_id":"a"}', "invalid_characters"),
        ('{"type":"ask","text":"a\\ud800b","client_id":"a"}', "invalid_characters"),
        (json.dumps({"type": "ask", "text": "x" * 16_001, "client_id": "a"}), "question_too_long"),
        ('{"type":"resume","turn":"x","after":0}', "invalid_frame"),
        (f'{{"type":"resume","turn":"{NOBODYS}","after":-1}}', "invalid_frame"),
        (f'{{"type":"resume","turn":"{NOBODYS}","after":0}}', "not_found"),
        (f'{{"type":"stop","turn":"{NOBODYS}"}}', "not_found"),
        (f'{{"type":"ask","text":"x","client_id":"a","knowledge_bases":["{NOBODYS}"]}}', "not_found"),
        ("[" * 100_000, "invalid_frame"),
        ("x" * 1_000_000, "frame_too_large"),
        (b"\x00\xff", "invalid_frame"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_frame_of_the_wrong_shape_gets_an_error_and_the_socket_stays(tab, raw, code):
    async with tab() as one:
        await one.socket.send(raw)
        error = await one.next()
        assert (error["type"], error["code"]) == ("error", code)
        assert error["message"]
        assert set(error) == {"type", "code", "message", "retryable", "details"}
        await one.send(type="ping")
        assert await one.next() == {"type": "pong"}


async def refusal(tab):
    from websockets.exceptions import ConnectionClosed

    async with tab:
        error = await tab.next()
        with pytest.raises(ConnectionClosed):
            await tab.next()
        return error["code"], tab.socket.close_code


async def test_a_refused_socket_is_told_why(server, tab, session, people, conversation):
    mal = await in_thread(lambda: people.session(people.mal))
    bea = await in_thread(lambda: people.session(people.bea))
    assert await refusal(tab(session=None)) == ("signed_out", 4401)
    for key in ("0" * 32, r'"\000\000\000\000\000\000\000\000"', "é" * 32, "x" * 5000):
        assert await refusal(tab(session=key)) == ("signed_out", 4401)
    assert await refusal(tab(session='"\\000abcdefgh"')) == ("signed_out", 4401)
    assert await refusal(tab(session=mal)) == ("not_found", 4404)
    assert await refusal(tab(session=bea)) == ("not_found", 4404)
    assert await refusal(Tab(server, uuid4(), session=session)) == ("not_found", 4404)
    assert await refusal(Tab(server, "x", session=session)) == ("not_found", 4404)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://127.0.0.1.evil.example",
        "http://a@127.0.0.1:{port}",
    ],
)
async def test_a_page_of_another_site_is_refused(server, tab, origin):
    assert await refusal(tab(origin=origin.format(port=server.port))) == ("wrong_origin", 4403)


async def test_our_own_page_is_welcome(server, tab):
    async with tab(origin=f"http://127.0.0.1:{server.port}") as one:
        await one.send(type="ping")
        assert await one.next() == {"type": "pong"}


async def test_another_conversations_turn_is_not_found(server, tab, session, people):
    from apps.conversations.services import start_conversation

    async with tab() as one:
        await one.ask("say 2")
        end = await one.turn()
    other = await in_thread(lambda: start_conversation(workspace=people.acme, actor=people.ann))
    async with Tab(server, other.pk, session=session) as two:
        for frame in ({"type": "resume", "turn": end["turn"], "after": 0}, {"type": "stop", "turn": end["turn"]}):
            await two.send(**frame)
            assert (await two.next())["code"] == "not_found"


async def test_rights_are_looked_at_again_with_every_frame(server, people):
    from apps.conversations.services import delete_conversation, start_conversation
    from apps.workspaces.models import Membership, Role

    def prepare():
        return start_conversation(workspace=people.acme, actor=people.bea), people.session(people.bea)

    conversation, session = await in_thread(prepare)
    async with Tab(server, conversation.pk, session=session) as one:
        await in_thread(lambda: Membership.objects.filter(user=people.bea).delete())
        await one.ask("say 1")
        assert (await one.next())["code"] == "not_found"
        await one.socket.wait_closed()
        assert one.socket.close_code == 4404

    def join_and_delete_later():
        Membership.objects.create(workspace=people.acme, user=people.bea, role=Role.VIEWER)

    await in_thread(join_and_delete_later)
    async with Tab(server, conversation.pk, session=session) as one:
        await in_thread(lambda: delete_conversation(conversation=conversation, actor=people.bea))
        await one.ask("say 1")
        assert (await one.next())["code"] == "not_found"


async def test_a_turn_is_shown_only_while_its_reader_may_see_it(server, people, monkeypatch):
    """Without a frame of theirs: signed out, out of the workspace, or locked while an answer streams."""
    from apps.conversations.services import start_conversation
    from apps.workspaces.models import Membership, Role

    monkeypatch.setattr(consumers, "LOOK_AGAIN_S", 0.2)

    def lose(how, key):
        if how == "signed out":
            Session.objects.filter(session_key=key).delete()
        elif how == "left":
            Membership.objects.filter(user=people.bea).delete()
        else:
            type(people.bea).objects.filter(pk=people.bea.pk).update(is_active=False)

    def back():
        type(people.bea).objects.filter(pk=people.bea.pk).update(is_active=True)
        Membership.objects.get_or_create(user=people.bea, workspace=people.acme, defaults={"role": Role.VIEWER})

    for how, code in (("signed out", 4401), ("left", 4404), ("locked", 4401)):
        await in_thread(back)
        conversation = await in_thread(lambda: start_conversation(workspace=people.acme, actor=people.bea))
        key = await in_thread(lambda: people.session(people.bea))
        async with Tab(server, conversation.pk, session=key) as one:
            await one.ask("say 200 20")
            await one.until("token")
            await in_thread(lambda how=how, key=key: lose(how, key))
            async with asyncio.timeout(3):
                while (await one.next())["type"] != "error":
                    pass
                await one.socket.wait_closed()
            assert one.socket.close_code == code, how
    await in_thread(back)


async def test_a_window_that_was_left_open_shows_no_later_turn(server, people, monkeypatch):
    from apps.conversations.services import start_conversation

    monkeypatch.setattr(consumers, "LOOK_AGAIN_S", 0.0)
    conversation = await in_thread(lambda: start_conversation(workspace=people.acme, actor=people.bea))
    elsewhere, here = await in_thread(lambda: [people.session(people.bea) for _ in range(2)])
    async with Tab(server, conversation.pk, session=elsewhere) as left_open:
        await left_open.send(type="ping")
        await left_open.next()
        await in_thread(lambda: Session.objects.filter(session_key=elsewhere).delete())
        async with Tab(server, conversation.pk, session=here) as one:
            await one.ask("say 5")
            assert (await one.turn())["status"] == "succeeded"
        assert (await left_open.next())["code"] == "signed_out"
        await left_open.socket.wait_closed()
    assert [frame["type"] for frame in left_open.frames] == ["pong", "error"]


async def test_a_flood_of_frames_is_read_slowly_and_answered(tab, monkeypatch):
    monkeypatch.setattr(consumers, "FRAMES_A_SECOND", 50.0)
    async with tab() as one:
        began = time.monotonic()
        for _ in range(80):
            await one.send(type="ping")
        for _ in range(80):
            assert await one.next() == {"type": "pong"}
        assert time.monotonic() - began > 0.6  # forty at once, the others at their pace


async def test_errors_speak_the_readers_language(tab):
    async with tab(headers={"Accept-Language": "zh-CN,zh;q=0.9"}) as one:
        await one.ask(" ")
        assert (await one.next())["code"] == "empty_question"


async def test_two_hundred_sockets_use_few_connections(server, session, people):
    """All of them ask, then idle: connections stay within the pools and go back to them."""
    from apps.conversations.services import start_conversation

    def begin():
        return [start_conversation(workspace=people.acme, actor=people.ann) for _ in range(200)]

    tabs = [Tab(server, conversation.pk, session=session) for conversation in await in_thread(begin)]
    for i in range(0, 200, 50):
        await asyncio.gather(*(tab.__aenter__() for tab in tabs[i : i + 50]))
    try:
        await asyncio.gather(*(tab.ask("say 10 50") for tab in tabs))
        ends = await asyncio.gather(*(tab.turn() for tab in tabs))
        assert {end["status"] for end in ends} == {"succeeded"}
        assert all(tab.text == "".join(words(10)) for tab in tabs)
        bound = 10 + database.THREADS + 2  # the async pool, the threads of the ORM, the listener and this test
        assert await in_thread(connections_of_server) <= bound
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


async def test_a_key_that_only_reads_asks_and_stops_nothing(server, people, conversation):
    _key, secret = await in_thread(lambda: a_key(people, "conversations:read"))
    used = await in_thread(lambda: turns_used(people))
    async with Tab(server, conversation.pk, headers={"Authorization": f"Bearer {secret}"}) as one:
        for frame in ({"type": "ask", "text": "say 1", "client_id": uuid4().hex}, {"type": "stop"}):
            await one.send(**frame)
            assert (await one.next())["code"] == "not_allowed"
    assert await in_thread(lambda: (turns_used(people), conversation.turns.count())) == (used, 0)


async def test_a_question_that_comes_twice_is_counted_once(tab, people):
    used, client_id = await in_thread(lambda: turns_used(people)), uuid4().hex
    async with tab() as one:
        await one.ask("say 1", client_id)
        await one.turn()
        await one.ask("say 1", client_id)
        await one.ask("say 1", parent=str(uuid4()))
        assert (await one.until("error"))["code"] == "not_found"
    assert await in_thread(lambda: turns_used(people)) == used + 1


async def test_a_question_that_comes_twice_needs_no_room_for_the_second(tab, people):
    quota, client_id = Quota.objects.filter(workspace=people.acme, user=None, kind="turns"), uuid4().hex
    async with tab() as one:
        await one.ask("say 1", client_id)
        end = await one.turn()
        await in_thread(lambda: quota.update(limit=F("used")))
        try:
            await one.ask("say 1", client_id)
            again = await one.turn()
            await one.ask("say 1")
            assert (await one.until("error"))["code"] == "quota_exceeded"
        finally:
            await in_thread(lambda: quota.update(limit=None))
    assert again == end
    asked = await in_thread(lambda: AuditEvent.objects.filter(action="question.asked", target_id=end["turn"]).get())
    assert (asked.kind, asked.actor_id, asked.right, asked.ip) == ("person", people.ann.pk, "owner", "127.0.0.1")
    assert asked.workspace_id == people.acme.pk


async def test_a_key_reads_by_its_own_rights_what_its_person_asked(server, tab, people, conversation, monkeypatch):
    seen = []
    watch_rows = ENGINE.news.watch_rows

    def watched(turn_id, *, after, reader):
        seen.append(reader.kind)
        return watch_rows(turn_id, after=after, reader=reader)

    monkeypatch.setattr(ENGINE.news, "watch_rows", watched)
    _key, secret = await in_thread(lambda: a_key(people, "conversations:read"))
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


def turns_used(people):
    found = Quota.objects.filter(workspace=people.acme, user=people.ann, kind="turns").first()
    return found.used if found else 0
