"""What strangers may load and do: little, and only from where the owner allows it."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from apps.agents.models import Agent
from apps.common.fields import Secret
from apps.widgets import services, showing, tokens
from apps.widgets.models import Use, Visitor
from tests.access.world import routes

SHOP = "https://shop.example"
ROUTES = {
    "widget:script", "widget:frame", "widget:greet", "widget:open-session", "widget:renew-session",
    "widget:show-history", "widget:start-again", "widget:show-excerpt",
}  # fmt: skip


def path(widget, rest=""):
    return f"/widget/{widget.public_id}/{rest}"


def greet(client, widget, origin=SHOP, **body):
    headers = {"origin": origin} if origin is not None else {}
    return client.post(path(widget, "greet/"), json.dumps(body), content_type="text/plain", headers=headers)


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def session_of(client, widget, origin=SHOP):
    ticket = greet(client, widget, origin).json()["ticket"]
    answer = client.post(path(widget, "session/"), json.dumps({"ticket": ticket}), content_type="text/plain")
    return answer.json()["token"]


def test_these_routes_are_open_and_no_others():
    assert {route for route, _ in routes() if route.startswith("widget:")} == ROUTES


def test_the_loader_is_small_and_may_be_loaded_anywhere(client, db):
    answer = client.get("/widget.js")
    assert answer["Content-Type"].startswith("text/javascript")
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert len(answer.content) < 15_000
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "origin", [None, "", "null", "https://shop.example.evil.test", "http://shop.example", "https://shop.example:8443"]
)
def test_other_sites_are_refused_clearly_and_get_nothing(client, widget, origin):
    headers = {"origin": origin} if origin is not None else {}
    body = json.dumps({"origin": SHOP})
    answer = client.post(path(widget, "greet/"), body, content_type="text/plain", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["code"] == "origin_not_allowed"
    assert set(answer.json()) == {"code", "message", "retryable", "details"}
    assert answer.json()["details"] == {}
    assert Visitor.objects.count() == 0


def test_no_list_is_no_site(client, widget):
    services.change_widget(widget=widget, actor=widget.created_by, origins=[])
    assert greet(client, widget).json()["code"] == "origin_not_allowed"


def test_an_allowed_site_gets_a_ticket_for_itself_alone(client, widget):
    answer = greet(client, widget)
    assert answer.status_code == 200
    assert answer["Access-Control-Allow-Origin"] == SHOP
    assert "Origin" in answer["Vary"]
    said = tokens.read_ticket(widget, answer.json()["ticket"])
    assert (said["o"], said["p"], said["i"]) == (SHOP, False, None)


def test_the_frame_stands_only_on_allowed_sites(client, widget):
    page = client.get(path(widget))
    policy = page["Content-Security-Policy"]
    [ancestors] = [part.strip() for part in policy.split(";") if "frame-ancestors" in part]
    assert ancestors == f"frame-ancestors {SHOP} {services.own_origin()}"
    assert "unsafe" not in policy
    assert "X-Frame-Options" not in page.headers
    assert "Set-Cookie" not in page.headers
    assert page["Referrer-Policy"] == "no-referrer"
    other = client.get("/accounts/login/")
    assert "frame-ancestors 'none'" in other["Content-Security-Policy"]


def test_what_is_switched_off_or_not_there_looks_the_same(client, widget):
    services.change_widget(widget=widget, actor=widget.created_by, enabled=False)
    for one in (widget.public_id, "nothing"):
        assert client.get(f"/widget/{one}/").status_code == 404
        answer = client.post(f"/widget/{one}/greet/", "", content_type="text/plain", headers={"origin": SHOP})
        assert (answer.status_code, answer.json()["code"]) == (404, "widget_not_found")


def test_a_ticket_opens_a_session_and_an_ended_one_comes_back(client, widget):
    token = session_of(client, widget)
    history = client.get(path(widget, "history/"), headers=bearer(token)).json()
    assert history["turns"] == []
    ticket = greet(client, widget).json()["ticket"]
    body = json.dumps({"ticket": ticket, "token": token})
    again = client.post(path(widget, "session/"), body, content_type="text/plain").json()["token"]
    assert client.get(path(widget, "history/"), headers=bearer(again)).json() == history
    assert Visitor.objects.count() == 1


def test_another_site_does_not_inherit_a_visitor(client, widget):
    services.change_widget(widget=widget, actor=widget.created_by, origins=[SHOP, "https://other.example"])
    token = session_of(client, widget)
    body = json.dumps({"ticket": greet(client, widget, "https://other.example").json()["ticket"], "token": token})
    client.post(path(widget, "session/"), body, content_type="text/plain")
    assert Visitor.objects.count() == 2


@pytest.mark.parametrize("body", ["", "[]", "{", '{"ticket": 1}', '{"ticket": "x"}', '{"token": "kv_x"}'])
def test_without_a_ticket_there_is_no_session(client, widget, body):
    answer = client.post(path(widget, "session/"), body, content_type="text/plain")
    assert (answer.status_code, answer.json()["code"]) == (401, "visitor_expired")


def test_a_session_is_not_opened_from_another_page(client, widget):
    body = json.dumps({"ticket": greet(client, widget).json()["ticket"]})
    answer = client.post(path(widget, "session/"), body, content_type="text/plain", headers={"origin": SHOP})
    assert answer.json()["code"] == "origin_not_allowed"


def test_tokens_are_of_one_widget_and_one_time(client, widget, acme, ann, monkeypatch):
    other = services.create_widget(workspace=acme, actor=ann, name="Other", origins=[SHOP])
    token = session_of(client, widget)
    assert client.get(path(other, "history/"), headers=bearer(token)).json()["code"] == "visitor_expired"
    ticket = greet(client, widget).json()["ticket"]
    body = json.dumps({"ticket": ticket})
    assert client.post(path(other, "session/"), body, content_type="text/plain").status_code == 401
    monkeypatch.setattr(tokens, "SESSION_S", -1)
    assert client.get(path(widget, "history/"), headers=bearer(token)).status_code == 401


def test_a_site_that_is_taken_off_the_list_ends_its_sessions(client, widget):
    token = session_of(client, widget)
    services.change_widget(widget=widget, actor=widget.created_by, origins=["https://new.example"])
    answer = client.get(path(widget, "history/"), headers=bearer(token))
    assert answer.json()["code"] == "origin_not_allowed"


def test_a_new_id_ends_the_old_one(client, widget, ann):
    token, old = session_of(client, widget), path(widget, "history/")
    services.renew_public_id(widget=widget, actor=ann)
    assert client.get(old, headers=bearer(token)).status_code == 404


def test_one_address_opens_so_many_sessions(client, widget):
    services.change_widget(widget=widget, actor=widget.created_by, per_address_hour=1)
    for _ in range(60):
        services.open_session(widget=widget, ticket=tokens.make_ticket(widget, SHOP), address="127.0.0.1")
    body = json.dumps({"ticket": greet(client, widget).json()["ticket"]})
    answer = client.post(path(widget, "session/"), body, content_type="text/plain")
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_questions")


@pytest.mark.parametrize("limit", ["per_visitor_hour", "per_address_hour", "per_day"])
def test_limits_count_and_refuse(widget, visitor, limit):
    from apps.widgets.errors import TooManyQuestions

    services.change_widget(widget=widget, actor=widget.created_by, **{limit: 2})
    for _ in range(2):
        services.count_question(widget=widget, visitor=visitor[0], address="192.0.2.1")
    before = set(Use.objects.values_list("subject", "count"))
    with pytest.raises(TooManyQuestions):
        services.count_question(widget=widget, visitor=visitor[0], address="192.0.2.1")
    assert set(Use.objects.values_list("subject", "count")) == before, "what is refused counts nowhere"
    assert not any("192.0.2.1" in subject for subject, _ in before)


def test_reads_are_counted_too_and_refused_without_data(client, widget, visitor, monkeypatch):
    monkeypatch.setattr(services, "LEAST_READS", 0)
    monkeypatch.setattr(services, "READS_A_QUESTION", 1)
    services.change_widget(widget=widget, actor=widget.created_by, per_visitor_hour=2, per_address_hour=3)
    read = [client.get(path(widget, "history/"), headers=bearer(visitor[1])) for _ in range(3)]
    assert [answer.status_code for answer in read] == [200, 200, 429]
    assert set(read[-1].json()) == {"code", "message", "retryable", "details"}
    assert read[-1].json()["code"] == "too_many_questions"
    assert client.post(path(widget, "renew/"), headers=bearer(visitor[1])).status_code == 429
    other = services.open_session(widget=widget, ticket=tokens.make_ticket(widget, SHOP))
    read = [client.get(path(widget, "history/"), headers=bearer(other[1])) for _ in range(2)]
    assert [answer.status_code for answer in read] == [200, 429], "of one address, whoever asks"


def test_none_is_a_limit_too(widget, visitor):
    from apps.widgets.errors import TooManyQuestions

    services.change_widget(widget=widget, actor=widget.created_by, per_day=0)
    with pytest.raises(TooManyQuestions):
        services.count_question(widget=widget, visitor=visitor[0], address="192.0.2.1")


def signed(secret, **said):
    payload = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    return f"{payload}.{hmac.new(secret.encode(), payload.encode(), hashlib.sha256).hexdigest()}"


def test_a_site_can_say_who_its_visitor_is(client, widget):
    services.change_widget(widget=widget, actor=widget.created_by, identity_secret=Secret("s3cret"))
    word = signed("s3cret", id="42", name="阿明", exp=time.time() + 60)
    ticket = greet(client, widget, identity=word).json()["ticket"]
    services.open_session(widget=widget, ticket=ticket)
    assert Visitor.objects.get().identity == {"id": "42", "name": "阿明"}
    for wrong in (
        signed("other", id="42", exp=time.time() + 60), signed("s3cret", id="42", exp=1), signed("s3cret", id="42"),
        word[:-1], "x", f"{word}0", "é.é", signed("s3cret", exp=time.time() + 60),
    ):  # fmt: skip
        assert greet(client, widget, identity=wrong).json()["code"] == "identity_refused", wrong


def test_two_people_on_one_browser_are_two_visitors(client, widget):
    services.change_widget(widget=widget, actor=widget.created_by, identity_secret=Secret("s3cret"))
    first = greet(client, widget, identity=signed("s3cret", id="1", exp=time.time() + 60)).json()["ticket"]
    _visitor, token = services.open_session(widget=widget, ticket=first)
    second = greet(client, widget, identity=signed("s3cret", id="2", exp=time.time() + 60)).json()["ticket"]
    services.open_session(widget=widget, ticket=second, token=token)
    assert Visitor.objects.count() == 2
    nobody, _token = services.open_session(widget=widget, ticket=greet(client, widget).json()["ticket"], token=token)
    assert (nobody.identity, Visitor.objects.count()) == (None, 3)  # signed out: another visitor


def test_what_broke_is_told_without_the_workspaces_affairs(widget):
    def shown(code):
        given = {"code": code, "message": "gpt-9 of ACME at 10.0.0.7", "retryable": True, "details": {"model": "gpt-9"}}
        frame = {"seq": 1, "turn": "t", "type": "turn.finished", "status": "failed", "error": given}
        return json.loads(showing.frame(widget, json.dumps(frame)))["error"]

    assert shown("turn_crashed")["code"] == "turn_crashed"
    for code, said in (("budget_exhausted", "budget_exhausted"), ("model_unreachable", "answer_failed")):
        assert shown(code)["code"] == said
        assert "gpt-9" not in json.dumps(shown(code))


def test_another_agent_is_another_conversation(widget, visitor, acme):
    before = services.conversation_of(widget, visitor[0])
    assert services.conversation_of(widget, visitor[0]) == before
    widget.agent = Agent.objects.create(workspace=acme, name="Other")
    assert services.conversation_of(widget, visitor[0]) != before


def test_one_line_is_one_place():
    assert services.place_of("2001:db8:1:2::7") == services.place_of("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
    assert services.place_of("2001:db8:1:3::7") != services.place_of("2001:db8:1:2::7")
    assert services.place_of("::ffff:192.0.2.1") == services.place_of("192.0.2.1") == "192.0.2.1"


@pytest.mark.parametrize("word", ["[" * 4000, '{"ticket": "\\ud800"}', "\x00"])
def test_odd_bodies_are_no_ticket(client, widget, word):
    assert client.post(path(widget, "session/"), word, content_type="text/plain").json()["code"] == "visitor_expired"
    assert client.post("/widget/%00/session/", word, content_type="text/plain").status_code == 404


def test_excerpts_are_shown_where_the_owner_allows_it(client, widget, visitor, handbook):
    from django.core.files.base import ContentFile

    from apps.conversations.models import Citation, Message, Turn
    from apps.knowledge.models import Document

    document = Document(
        workspace=widget.workspace, knowledge_base=handbook, name="a.md", size_bytes=1, sha256="1" * 64,
        status="indexed",
    )  # fmt: skip
    document.file.save("original", ContentFile(b"a"), save=False)
    document.save()
    talk = services.conversation_of(widget, visitor[0])
    turn = Turn.objects.create(conversation=talk, number=1, client_id="a", status="succeeded", question="Why?")
    answer = Message.objects.create(conversation=talk, turn=turn, role="assistant", text="So.[[c1]]")
    Citation.objects.create(message=answer, n=1, document="a.md", document_id=document.pk, text="So it is.", cited=True)
    place = path(widget, f"turns/{turn.pk}/sources/1/")

    assert client.get(place, headers=bearer(visitor[1])).json()["text"] == "So it is."
    assert client.get(place).status_code == 401
    stranger = services.open_session(widget=widget, ticket=tokens.make_ticket(widget, SHOP))[1]
    assert client.get(place, headers=bearer(stranger)).status_code == 404

    history = client.get(path(widget, "history/"), headers=bearer(visitor[1])).json()
    assert "cite" in history["turns"][0]["html"]
    assert history["turns"][0]["sources"][0]["document"] == "a.md"

    services.set_reach(widget=widget, agent=widget.agent, bases=[], actor=handbook.created_by)
    assert client.get(place, headers=bearer(visitor[1])).status_code == 404, "a right that was withdrawn"
    assert "a.md" not in client.get(path(widget, "history/"), headers=bearer(visitor[1])).content.decode()

    services.set_reach(widget=widget, agent=widget.agent, bases=[handbook], actor=handbook.created_by)
    for less in ("names", "none"):
        services.change_widget(widget=widget, actor=widget.created_by, sources=less)
        assert client.get(place, headers=bearer(visitor[1])).status_code == 404
    assert "a.md" not in client.get(path(widget, "history/"), headers=bearer(visitor[1])).content.decode()


def test_a_signed_in_person_is_no_visitor(client, widget, ann):
    client.force_login(ann)
    assert client.get(path(widget, "history/")).status_code == 401


def test_the_same_word_in_both_languages(widget):
    page = Client().get(path(widget) + "?lang=zh").content.decode()
    assert 'lang="zh-hans"' in page.replace("\n", " ")
    assert 'lang="en"' in Client().get(path(widget) + "?lang=en").content.decode()
    assert finders.find("js/widget.js")
