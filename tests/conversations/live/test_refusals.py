"""What a socket refuses: frames, origins, strangers, floods."""

import json
import time
from uuid import uuid4

import pytest

from apps.common.database import in_db
from apps.conversations import consumers
from tests.conversations.live.client import Tab

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
    mal = await in_db(lambda: people.session(people.mal))
    bea = await in_db(lambda: people.session(people.bea))
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
    other = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.ann))
    async with Tab(server, other.pk, session=session) as two:
        for frame in ({"type": "resume", "turn": end["turn"], "after": 0}, {"type": "stop", "turn": end["turn"]}):
            await two.send(**frame)
            assert (await two.next())["code"] == "not_found"


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
