"""/ws/widget/<public id>/ over a real server: who gets in, what they may ask, and what they get to see."""

import json
from decimal import Decimal
from uuid import uuid4

import pytest
from websockets.asyncio.client import connect

from apps.common.database import in_db as in_thread
from apps.conversations import consumers
from apps.conversations.models import Conversation, Turn
from apps.widgets import services, tokens
from apps.widgets.models import Visitor
from tests.conversations.live.client import Tab
from tests.conversations.live.conftest import db, people, server  # noqa: F401 (fixtures)
from tests.conversations.scripted import ANSWER, DOCUMENT

pytestmark = [pytest.mark.xdist_group("live-widget")]
SHOP = "https://shop.example"


class VisitorTab(Tab):
    """A visitor's socket."""

    def __init__(self, server, widget, token, *, origin=SHOP, by="protocol"):  # noqa: F811
        words = {"subprotocols": ["knowsphere", token]} if by == "protocol" and token else {}
        headers = {"Authorization": f"Bearer {token}"} if by == "header" else {}
        self._connect = connect(
            f"ws://127.0.0.1:{server.port}/ws/widget/{widget.public_id}/{f'?token={token}' if by == 'query' else ''}",
            additional_headers=headers, origin=origin, max_size=None, **words,
        )  # fmt: skip
        self.frames = []


@pytest.fixture
def widget(people):  # noqa: F811
    from apps.agents.services import default_agent

    made = services.create_widget(workspace=people.acme, actor=people.ann, name="Shop", origins=[SHOP])
    services.set_reach(widget=made, agent=default_agent(people.acme), bases=[], actor=people.ann)
    return made


@pytest.fixture
def visitor(widget):
    return services.open_session(widget=widget, ticket=tokens.make_ticket(widget, SHOP))


@pytest.fixture
def tab(server, widget, visitor):  # noqa: F811
    return lambda token=None, **options: VisitorTab(server, widget, visitor[1] if token is None else token, **options)


async def refusal(one):
    frame = await one.next()
    await one.socket.wait_closed()
    return frame["code"], one.socket.close_code


@pytest.mark.parametrize("by", ["protocol", "header"])
async def test_a_visitor_asks_and_sees_the_stored_answer(tab, widget, visitor, by):
    async with tab(by=by) as one:
        await one.ask("cite")
        end = await one.turn()
    assert end["status"] == "succeeded"
    assert one.text == ANSWER
    assert [frame["seq"] for frame in one.frames] == list(range(1, len(one.frames) + 1))
    turn = await in_thread(lambda: Turn.objects.select_related("conversation").get(pk=end["turn"]))
    assert (turn.conversation.visitor_id, turn.conversation.owner_id) == (visitor[0].pk, None)


@pytest.mark.parametrize("shown", ["none", "names", "excerpts"])
async def test_only_what_the_owner_allows_is_sent(tab, widget, shown):
    await in_thread(lambda: services.change_widget(widget=widget, actor=widget.created_by, sources=shown))
    async with tab() as one:
        await one.ask("cite 5")
        await one.turn()
    sent = json.dumps(one.frames, ensure_ascii=False)
    assert str(DOCUMENT) not in sent
    assert "chunk_id" not in sent
    assert "Economy class is booked." not in json.dumps([f for f in one.frames if f["type"] == "sources"])
    assert not [frame for frame in one.frames if frame["type"] == "usage" and "prompt" in frame]
    assert all("agent" not in frame and "model" not in frame for frame in one.frames)
    assert ("Travel policy.pdf" in sent) == (shown != "none")


@pytest.mark.parametrize(
    ("origin", "code"),
    [(None, "origin_not_allowed"), ("null", "origin_not_allowed"), ("https://evil.test", "origin_not_allowed"),
     ("https://shop.example.evil.test", "origin_not_allowed"), ("http://shop.example", "origin_not_allowed")],
)  # fmt: skip
async def test_other_sites_are_refused(tab, origin, code):
    async with tab(origin=origin) as one:
        assert await refusal(one) == (code, 4403)


@pytest.mark.parametrize("token", ["", "kv_x", "kv_a.b.c", "ks_key", "x" * 3000])
async def test_without_a_session_nothing_opens(tab, token):
    async with tab(token, by="header") as one:
        assert await refusal(one) == ("visitor_expired", 4401)


async def test_a_token_in_the_address_is_none(tab):
    async with tab(by="query") as one:
        assert await refusal(one) == ("visitor_expired", 4401)


async def test_a_public_id_alone_or_of_another_is_refused(tab, server, people, visitor):  # noqa: F811
    other = await in_thread(
        lambda: services.create_widget(workspace=people.acme, actor=people.ann, name="Other", origins=[SHOP])
    )
    async with VisitorTab(server, other, visitor[1]) as one:
        assert await refusal(one) == ("visitor_expired", 4401)
    other.public_id = "nothing"
    async with VisitorTab(server, other, visitor[1]) as one:
        assert await refusal(one) == ("widget_not_found", 4404)


async def test_limits_refuse_the_question_and_keep_the_socket(tab, widget):
    await in_thread(lambda: services.change_widget(widget=widget, actor=widget.created_by, per_visitor_hour=1))
    async with tab() as one:
        client_id = uuid4().hex
        await one.ask("say 1", client_id)
        first = await one.turn()
        await one.ask("say 1", client_id)  # the same question again counts nothing
        await one.ask("say 1")
        assert (await one.until("error"))["code"] == "too_many_questions"
        await one.send(type="ping")
        assert (await one.next())["type"] == "pong"
    assert await in_thread(lambda: Turn.objects.filter(conversation__widget_id=widget.pk).count()) == 1
    assert first["status"] == "succeeded"


async def test_a_visitor_chooses_nothing_but_words(tab, people, widget):  # noqa: F811
    from apps.knowledge.models import KnowledgeBase

    base = await in_thread(lambda: KnowledgeBase.objects.create(workspace=people.acme, name="Inner"))
    async with tab() as one:
        await one.ask("say 1", knowledge_bases=[str(base.pk)], web=True, model=str(uuid4()), attachments=[str(uuid4())])
        end = await one.turn()
    options = (await in_thread(lambda: Turn.objects.get(pk=end["turn"]))).options
    assert (options["knowledge_bases"], options["web"], options["model"], options["attachments"]) == (
        [],
        False,
        None,
        [],
    )


async def test_turns_of_others_are_not_there(tab, widget):
    stranger = await in_thread(lambda: services.open_session(widget=widget, ticket=tokens.make_ticket(widget, SHOP)))
    async with tab() as one:
        await one.ask("say 1")
        end = await one.turn()
    async with tab(stranger[1]) as two:
        for frame in ({"type": "resume", "turn": end["turn"], "after": 0}, {"type": "stop", "turn": end["turn"]}):
            await two.send(**frame)
            assert (await two.next())["code"] == "not_found"


async def test_a_reconnect_goes_on_where_it_was(tab):
    async with tab() as one:
        await one.ask("say 40 100")
        first = await one.until("token")
    async with tab() as two:
        await two.send(type="resume", turn=first["turn"], after=first["seq"])
        await two.turn()
    frames = [*one.frames[: first["seq"]], *two.frames]
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))


async def test_a_widget_that_is_switched_off_ends_its_sockets(tab, widget):
    async with tab() as one:
        await one.send(type="ping")
        await one.next()  # it is in
        await in_thread(lambda: services.change_widget(widget=widget, actor=widget.created_by, enabled=False))
        await one.ask("say 1")
        assert (await one.until("error"))["code"] == "widget_not_found"
        await one.socket.wait_closed()
    assert await in_thread(lambda: Conversation.objects.filter(widget_id=widget.pk, turns__isnull=False).count()) == 0


async def test_an_answer_ends_for_a_visitor_whose_widget_or_site_goes_meanwhile(tab, widget, monkeypatch):
    monkeypatch.setattr(consumers, "LOOK_AGAIN_S", 600)  # the database tells
    for change, code in (
        ({"origins": ["https://other.example"]}, "origin_not_allowed"),
        ({"enabled": False}, "widget_not_found"),
    ):
        async with tab() as one:
            await one.ask("say 100 20")
            await one.until("token")
            known = len(one.frames)
            await in_thread(
                lambda change=change: services.change_widget(widget=widget, actor=widget.created_by, **change)
            )
            assert (await one.until("error"))["code"] == code
            await one.socket.wait_closed()
            assert len(one.frames) - known < 60, code  # three seconds of twenty, on a busy machine
        await in_thread(
            lambda: services.change_widget(widget=widget, actor=widget.created_by, origins=[SHOP], enabled=True)
        )


async def test_a_spent_budget_refuses_before_a_call(tab, widget, people, settings):  # noqa: F811
    from apps.models import budget_services, budgets

    def spend():
        budget = budget_services.set_budget(
            workspace=people.acme, actor=people.ann, scope="widget", subject=widget.pk, amount=Decimal(0), period="day"
        )
        budgets.forget()
        return budget

    await in_thread(spend)
    async with tab() as one:
        await one.ask("say 1")
        refused = await one.until("error")
    assert (refused["code"], refused["details"]) == ("budget_exhausted", {})
    assert "spent" not in refused["message"]
    assert await in_thread(lambda: Visitor.objects.filter(widget=widget).count()) == 1
