"""Questions and answers through the REST API, and by a key on the socket."""

import asyncio
import json

import pytest
from websockets.asyncio.client import connect

from tests.conversations import scripted
from tests.conversations.live.client import Tab


def sse(text):
    """The events of a stream: id, event, data."""
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            yield int(lines["id"]), lines["event"], json.loads(lines["data"])


def test_a_question_is_answered_and_its_events_are_the_sockets(caller, ask, over):
    turn = ask("cite")
    assert turn["status"] in ("queued", "running")
    done = over(turn)
    assert (done["status"], done["answer"]) == ("succeeded", scripted.ANSWER)
    whole = caller.get(f"turns/{turn['id']}/events").json()
    assert [event["seq"] for event in whole["events"]] == list(range(1, whole["last_seq"] + 1))
    assert "".join(event["text"] for event in whole["events"] if event["type"] == "token") == scripted.ANSWER
    rest = caller.get(f"turns/{turn['id']}/events?after=3&limit=2").json()
    assert [event["seq"] for event in rest["events"]] == [4, 5]
    streamed = list(sse(caller.get(f"turns/{turn['id']}/events", headers={"Accept": "text/event-stream"}).text))
    assert [seq for seq, _, _ in streamed] == [event["seq"] for event in whole["events"]]
    resumed = caller.get(
        f"turns/{turn['id']}/events", headers={"Accept": "text/event-stream", "Last-Event-ID": str(streamed[-2][0])}
    )
    assert [kind for _, kind, _ in sse(resumed.text)] == ["turn.finished"]
    sources = caller.get(f"turns/{turn['id']}/citations").json()["results"]
    assert [(row["n"], row["document"], row["cited"]) for row in sources] == [
        (1, "Travel policy.pdf", True),
        (2, "差旅管理办法.docx", True),
    ]
    assert {row["text"] for row in sources} == {""}  # those documents are not there, so nobody may read them
    said = caller.get(f"messages?conversation={turn['conversation']}").json()["results"]
    assert [row["role"] for row in said] == ["user", "assistant"]


def test_an_answer_is_stopped_from_outside_and_followed_meanwhile(caller, ask, over):
    turn = ask("wait")
    with caller.stream("GET", f"turns/{turn['id']}/events", headers={"Accept": "text/event-stream"}) as stream:
        lines = stream.iter_lines()
        assert any(line.startswith("event: token") for line in lines)
        assert caller.post(f"turns/{turn['id']}/stop").status_code == 202
        assert any(line.startswith("event: turn.finished") for line in lines)
    assert over(turn)["status"] == "stopped"
    assert caller.post(f"turns/{turn['id']}/stop").json()["status"] == "stopped"


def test_the_same_question_twice_is_one_turn(caller, over):
    talk = caller.post("conversations", json={}).json()["id"]
    by_client = [caller.post(f"conversations/{talk}/turns", json={"text": "say 1", "client_id": "a"}) for _ in range(2)]
    assert by_client[0].json()["id"] == by_client[1].json()["id"]
    over(by_client[0].json())
    headers = {"Idempotency-Key": "ask-1"}
    by_key = [caller.post(f"conversations/{talk}/turns", json={"text": "say 1"}, headers=headers) for _ in range(2)]
    assert by_key[0].json()["id"] == by_key[1].json()["id"] != by_client[0].json()["id"]
    assert by_key[1].headers["Idempotent-Replay"] == "true"
    over(by_key[0].json())


@pytest.mark.parametrize(
    ("question", "status", "code"),
    [({}, 422, "empty_question"), ({"text": "x", "parent": "0" * 32}, 404, "not_found"), ({"text": 1}, 201, None)],
)
def test_what_cannot_be_asked_is_said(caller, question, status, code):
    talk = caller.post("conversations", json={}).json()["id"]
    answer = caller.post(f"conversations/{talk}/turns", json=question)
    assert (answer.status_code, answer.json().get("code")) == (status, code)


async def test_a_key_opens_a_socket_by_header_or_by_subprotocol(server, people, secret):
    from apps.common.database import in_db
    from apps.conversations.services import start_conversation

    talk = await in_db(start_conversation, workspace=people.acme, actor=people.ann)
    async with Tab(server, talk.pk, headers={"Authorization": f"Bearer {secret}"}) as tab:
        await tab.ask("say 3")
        assert (await tab.turn())["status"] == "succeeded"
    where = f"ws://127.0.0.1:{server.port}/ws/conversations/{talk.pk}/"
    async with connect(where, subprotocols=["knowsphere", secret], origin="https://elsewhere.example") as socket:
        assert socket.subprotocol == "knowsphere"
        await socket.send('{"type":"stop"}')
        await socket.send('{"type":"ping"}')
        assert json.loads(await asyncio.wait_for(socket.recv(), 60)) == {"type": "pong"}


async def test_a_socket_refuses_a_key_that_is_none_or_another_tenants(server, people, secret):
    from apps.common.database import in_db
    from apps.conversations.services import start_conversation
    from apps.workspaces.models import ApiKey
    from apps.workspaces.services import create_api_key

    talk = await in_db(start_conversation, workspace=people.acme, actor=people.ann)
    theirs = await in_db(lambda: people.mal.workspaces.get())
    key, other = await in_db(
        create_api_key, workspace=theirs, name="k", scopes=["conversations:write"], actor=people.mal
    )
    for headers, code in [
        ({"Authorization": "Bearer ks_no"}, 4401),
        ({"Authorization": f"Bearer {other}"}, 4404),
        ({}, 4401),
    ]:
        async with Tab(server, talk.pk, headers=headers) as tab:
            assert (await tab.next())["type"] == "error"
            await asyncio.wait_for(tab.socket.wait_closed(), 60)
            assert tab.socket.close_code == code
    where = f"ws://127.0.0.1:{server.port}/ws/conversations/{talk.pk}/?key={secret}"
    async with connect(where) as socket:
        assert json.loads(await socket.recv())["code"] == "signed_out"
    # one that ends while it is open
    mine = await in_db(start_conversation, workspace=theirs, actor=people.mal)
    async with Tab(server, mine.pk, headers={"Authorization": f"Bearer {other}"}) as tab:
        await tab.ask("say 1")
        assert (await tab.turn())["status"] == "succeeded"
        await in_db(lambda: ApiKey.objects.filter(pk=key.pk).delete())
        await tab.send(type="stop")
        assert (await tab.until("error"))["code"] == "key_refused"
