"""Every frame that a client may send, on every socket, by each persona. A new socket or frame fails without a row.

Rows: what the persona is told first, by the type of the frame or the code of the error that closes the socket.
"""

from contextlib import suppress
from typing import get_args
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed

from apps.common.database import in_db
from apps.conversations import frames
from apps.workspaces.models import User
from apps.workspaces.principals import SCOPES
from tests.conversations.live.client import Tab
from tests.conversations.live.conftest import db, people, server  # noqa: F401 (fixtures)
from tests.widgets.live.test_socket import SHOP, VisitorTab, visitor, widget  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.xdist_group("live-access")]
SOCKETS = {"ws/conversations/<uuid:pk>/", "ws/widget/<str:public_id>/"}
ANSWERS = {"ask": "turn.queued", "resume": "turn.queued", "stop": None, "ping": "pong"}  # those who are let in
# At ann's conversation in acme: who is refused, and why.
CONVERSATION = {
    "nobody": "signed_out", "other": "not_found", "viewer": "not_found", "member": "not_found",
    "department": "not_found", "admin": "not_found", "owner": None, "key": None, "key that only reads": None,
    "widget": "key_refused", "operator": "not_found",
}  # fmt: skip
# At the widget's socket: a visitor's token lets in, and nothing else does, whoever sends it.
WIDGET = {**dict.fromkeys(CONVERSATION, "visitor_expired"), "widget": None, "visitor of another": "visitor_expired"}


def test_every_socket_and_frame_has_a_row():
    from knowsphere.asgi import SOCKETS as router

    assert {str(route.pattern) for route in router.routes} - {""} == SOCKETS
    kinds = {get_args(frame.model_fields["type"].annotation)[0] for frame in get_args(frames.Frame)}
    assert kinds == set(ANSWERS)


@pytest.fixture
def place(people, widget, visitor):  # noqa: F811
    """Headers and cookies of each persona, ann's conversation, and a finished turn in it and in the visitor's."""
    from apps.conversations.services import start_conversation
    from apps.widgets import services as widgets
    from apps.widgets import tokens
    from apps.workspaces import services
    from apps.workspaces.models import Role
    from tests.conftest import person

    made = {name: person(f"{uuid4().hex}@frames.example") for name in ("member", "department", "admin", "operator")}
    User.objects.filter(pk=made["operator"].pk).update(is_staff=True, is_superuser=True)
    for name, role in (("member", Role.MEMBER), ("department", Role.VIEWER), ("admin", Role.ADMIN)):
        services.set_membership(workspace=people.acme, user=made[name], role=role)
    made |= {"owner": people.ann, "viewer": people.bea, "other": people.mal}
    comes = {name: {"session": people.session(user)} for name, user in made.items()}
    keys = {"key": list(SCOPES), "key that only reads": ["conversations:read"]}
    for name, scopes in keys.items():
        _key, secret = services.create_api_key(workspace=people.acme, name=name, scopes=scopes, actor=people.ann)
        comes[name] = {"headers": {"Authorization": f"Bearer {secret}"}}
    comes["nobody"] = {}
    comes["widget"] = {"headers": {"Authorization": f"Bearer {visitor[1]}"}}
    other = widgets.create_widget(workspace=people.acme, actor=people.ann, name="Second", origins=[SHOP])
    _visitor, token = widgets.open_session(widget=other, ticket=tokens.make_ticket(other, SHOP))
    comes["visitor of another"] = {"headers": {"Authorization": f"Bearer {token}"}}
    return comes, start_conversation(workspace=people.acme, actor=people.ann)


async def told(tab, kind, turn):
    """Send a frame; return what came first, and nothing if it was taken in silence."""
    async with tab as one:
        with suppress(ConnectionClosed):  # what the server said before it closed is read all the same
            if kind == "ask":
                await one.ask("say 2")
            else:
                await one.send(type=kind, **({"turn": turn} if kind == "resume" else {}))
            if kind == "stop":
                await one.send(type="ping")
        frame = await one.next()
        if kind == "ask" and frame["type"] == "turn.queued":
            await one.turn()
        return frame.get("code", frame["type"])


async def finished(tab):
    async with tab as one:
        await one.ask("say 1")
        return (await one.turn())["turn"]


async def test_answers_as_the_table_says(server, place, widget):  # noqa: F811
    comes, conversation = place
    turn = await finished(Tab(server, conversation.pk, **comes["owner"]))
    wrong = []
    for persona, refused in CONVERSATION.items():
        for kind, answer in ANSWERS.items():
            said = await told(Tab(server, conversation.pk, **comes[persona]), kind, turn)
            wanted = refused or answer or "pong"
            if persona == "key that only reads" and kind in ("ask", "stop"):
                wanted = "not_allowed"
            if said != wanted:
                wrong.append((persona, kind, said, wanted))
    assert wrong == []


async def test_the_widgets_socket_answers_as_the_table_says(server, place, widget, visitor):  # noqa: F811
    comes, _conversation = place
    turn = await finished(VisitorTab(server, widget, visitor[1]))

    def tab(persona):
        one = VisitorTab(server, widget, "", by="nothing")
        headers = dict(comes[persona].get("headers", {}))
        if "session" in comes[persona]:
            headers["Cookie"] = f"ks_session={comes[persona]['session']}"
        one._connect.additional_headers = headers
        return one

    wrong = []
    for persona, refused in WIDGET.items():
        for kind, answer in ANSWERS.items():
            said = await told(tab(persona), kind, turn)
            if said != (refused or answer or "pong"):
                wrong.append((persona, kind, said))
    assert wrong == []


async def test_a_turn_is_watched_by_its_conversation_alone(server, place, people):  # noqa: F811
    """The id of somebody else's turn, sent on a socket of one's own, is the id of nothing."""
    from apps.conversations.services import start_conversation

    comes, conversation = place
    turn = await finished(Tab(server, conversation.pk, **comes["owner"]))
    wrong = []
    for persona, user, workspace in (
        ("viewer", people.bea, people.acme),
        ("other", people.mal, await in_db(lambda: people.mal.workspaces.get())),
    ):
        own = await in_db(lambda user=user, workspace=workspace: start_conversation(workspace=workspace, actor=user))
        for frame in ({"type": "resume", "turn": turn}, {"type": "stop", "turn": turn}):
            async with Tab(server, own.pk, **comes[persona]) as one:
                await one.send(**frame)
                said = await one.next()
                if said.get("code") not in ("not_found", "turn_not_found"):
                    wrong.append((persona, frame["type"], said))
    assert wrong == []
