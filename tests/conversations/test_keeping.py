"""The list of conversations and what may be done with one: search, pin, rename, archive, delete, export."""

import json
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.conversations.models import Citation, Conversation, Feedback, Message, Turn


@pytest.fixture
def handbook_file(handbook):
    from apps.knowledge.models import Document

    return Document.objects.create(
        workspace=handbook.workspace, knowledge_base=handbook, name="Travel policy.pdf", size_bytes=6,
        sha256="0" * 64, status="error_parsing",
    )  # fmt: skip


def add_turn(talk, question, answer="", *, parent=None, **more):
    number = talk.turns.count() + 1
    turn = Turn.objects.create(
        conversation=talk, number=number, client_id=uuid4().hex, parent=parent,
        **{"status": "succeeded", "question": question, **more},
    )  # fmt: skip
    Message.objects.create(conversation=talk, turn=turn, role="user", text=question)
    Message.objects.create(conversation=talk, turn=turn, role="assistant", text=answer)
    return turn


@pytest.fixture
def talk(acme, ann, handbook_file):
    """One question with a version, an answer with two sources, a code block and an unknown marker."""
    talk = Conversation.objects.create(workspace=acme, owner=ann, title="Flights")
    first = add_turn(talk, "Which class?", "Economy.[[c2]] Twice.[[c1]][[c9]]\n\n`[[c1]]`\n\n```\n[[c2]]\n```\n")
    message = first.messages.get(role="assistant")
    common = {"message": message, "document_id": handbook_file.pk, "document": handbook_file.name, "cited": True}
    Citation.objects.create(**common, n=1, text="Twice a year.", page=9, heading="Flights > How often")
    Citation.objects.create(**common, n=2, text="Economy class\nis booked.", page=3)
    add_turn(talk, "And by train?", "第二等座。", parent=first)
    add_turn(talk, "And by bus?", "Never.", parent=first)
    return talk


def act(client, talk, name, **data):
    return client.post(reverse(f"conversations:{name}-conversation", args=["acme", talk.pk]), data)


def listed(client, **query):
    page = client.get(reverse("conversations:list-conversations", args=["acme"]), query)
    return [one["row"].title for one in page.context["shown"]], page


def test_search_finds_words_of_questions_and_answers_with_their_place(client, ann, talk, acme):
    Conversation.objects.create(workspace=acme, owner=ann, title="二等座 trains")
    client.force_login(ann)
    for text, titles in {
        "BY TRAIN": ["Flights"],
        "二等座": ["二等座 trains", "Flights"],
        "100%": [],
        "flights": ["Flights"],
    }.items():
        found, page = listed(client, q=text)
        assert sorted(found) == sorted(titles), text
    found, page = listed(client, q="by train")
    [one] = page.context["shown"]
    assert (one["excerpt"].before, one["excerpt"].found, one["excerpt"].after) == ("And ", "by train", "?")
    assert f"?turn={one['excerpt'].turn_id}" in page.content.decode()


def test_search_never_finds_what_others_said(client, acme, ann, bea, talk):
    client.force_login(bea)
    assert listed(client, q="Economy")[0] == []
    assert listed(client)[0] == []


def test_pinned_first_archived_out_of_sight_and_found_all_the_same(client, ann, talk, acme):
    newer = Conversation.objects.create(workspace=acme, owner=ann, title="Newer")
    client.force_login(ann)
    act(client, talk, "pin", pinned="1")
    side = client.get(f"/acme/conversations/{newer.pk}/").content.decode()
    assert side.index(">Flights<") < side.index(">Newer<")
    act(client, talk, "archive", archived="1")
    assert listed(client)[0] == ["Newer"]
    assert listed(client, archived="1")[0] == ["Flights"]
    assert listed(client, q="economy")[0] == ["Flights"]
    assert ">Flights<" not in client.get(f"/acme/conversations/{newer.pk}/").content.decode().split("<main")[0]
    act(client, talk, "archive", archived="0")
    act(client, talk, "pin", pinned="0")
    assert listed(client)[0] == ["Newer", "Flights"]


def test_a_name_is_one_readable_line(client, ann, talk):
    client.force_login(ann)
    assert act(client, talk, "rename", title=" \u202eTravel\n rules ").status_code == 302
    talk.refresh_from_db()
    assert talk.title == "Travel rules"
    for title in ("", "\u200b", "x" * 201):
        assert act(client, talk, "rename", title=title).status_code == 422
    talk.refresh_from_db()
    assert talk.title == "Travel rules"


@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_nobody_is_led_away(client, ann, talk, there):
    client.force_login(ann)
    assert act(client, talk, "pin", next=there)["Location"] == f"/acme/conversations/{talk.pk}/"


def test_delete_and_undo_from_the_list(client, ann, talk):
    client.force_login(ann)
    there = reverse("conversations:list-conversations", args=["acme"])
    assert act(client, talk, "delete", next=there)["Location"] == there
    assert listed(client)[0] == []
    act(client, talk, "restore")
    assert listed(client)[0] == ["Flights"]


def test_markdown_has_the_branch_with_footnotes_and_code_untouched(client, ann, talk):
    client.force_login(ann)
    with_owner = client.get(reverse("conversations:export-conversation", args=["acme", talk.pk]))
    text = with_owner.content.decode()
    assert with_owner["Content-Disposition"] == 'attachment; filename="Flights.md"'
    assert "Economy.[^1-1] Twice.[^1-2]\n\n`[[c1]]`\n\n```\n[[c2]]\n```" in text
    assert "[^1-1]: Travel policy.pdf, page 3: “Economy class is booked.”" in text
    assert "[^1-2]: Travel policy.pdf, page 9, Flights > How often: “Twice a year.”" in text
    assert "## And by bus?" in text
    assert "train" not in text
    other = talk.turns.get(number=2)
    there = reverse("conversations:export-conversation", args=["acme", talk.pk])
    assert "## And by train?" in client.get(there, {"turn": str(other.pk)}).content.decode()


def test_json_has_all_and_quotes_only_what_may_be_read_now(client, ann, talk, handbook):
    from apps.knowledge.models import Document

    Feedback.objects.create(turn=talk.turns.get(number=1), good=False, reason="wrong", comment="no")
    client.force_login(ann)
    there = reverse("conversations:export-conversation", args=["acme", talk.pk]) + "?format=json"
    turns = json.loads(client.get(there).content)["turns"]
    assert [turn["parent"] for turn in turns] == [None, turns[0]["id"], turns[0]["id"]]
    assert [(one["n"], one["shown"], one["text"]) for one in turns[0]["sources"]] == [
        (1, 2, "Twice a year."),
        (2, 1, "Economy class\nis booked."),
    ]
    assert "[[c9]]" not in turns[0]["answer"]
    assert turns[0]["feedback"] == {"good": False, "reason": "wrong", "comment": "no"}
    Document.objects.update(deleted_at="2026-01-01T00:00:00Z")
    [*sources] = json.loads(client.get(there).content)["turns"][0]["sources"]
    assert [(one["readable"], one["text"], one["heading"]) for one in sources] == [(False, "", "")] * 2
    assert "Twice a year" not in client.get(there.partition("?")[0]).content.decode()


def test_the_page_shows_one_branch_and_leads_to_the_others(client, ann, talk):
    client.force_login(ann)
    there = f"/acme/conversations/{talk.pk}/"
    page = client.get(there)
    assert [shown.turn.question for shown in page.context["turns"]] == ["Which class?", "And by bus?"]
    assert "2 / 2" in page.content.decode()
    other = talk.turns.get(number=2)
    page = client.get(there, {"turn": str(other.pk)})
    assert [shown.turn.question for shown in page.context["turns"]] == ["Which class?", "And by train?"]
    for odd in ("x", str(uuid4()), "0" * 36):
        assert client.get(there, {"turn": odd, "before": odd}).status_code == 200


def long_talk(workspace, owner, count):
    """A conversation of so many turns, each with an answer of some length."""
    talk = Conversation.objects.create(workspace=workspace, owner=owner, title="Long")
    turns, parent = [], None
    for number in range(1, count + 1):
        parent = Turn(
            conversation=talk, number=number, client_id=str(number), status="succeeded", question=f"Question {number}",
            parent=parent, finished_at=timezone.now(),
        )  # fmt: skip
        turns.append(parent)
    Turn.objects.bulk_create(turns)
    said = [
        Message(conversation=talk, turn=turn, role=role, text=f"{role} {turn.number}. " + "Some **words** more. " * 20)
        for turn in turns
        for role in ("user", "assistant")
    ]
    Message.objects.bulk_create(said)
    return talk, turns


def test_a_thousand_turns_are_drawn_like_forty(client, ann, acme):
    client.force_login(ann)
    seen = []
    for count in (40, 1000):
        talk, turns = long_talk(acme, ann, count)
        there = f"/acme/conversations/{talk.pk}/"
        client.get(there)
        for query in ({}, {"before": str(turns[30].pk)}, {"turn": str(turns[0].pk)}):
            with CaptureQueriesContext(connection) as asked:
                page = client.get(there, query)
            seen.append((count, len(page.context["turns"]), len(asked), len(page.content)))
    short, long = seen[:3], seen[3:]
    for (_forty, shown, queries, size), (_thousand, shown_too, queries_too, size_too) in zip(short, long, strict=True):
        assert (shown_too, queries_too) == (shown, queries)
        assert shown_too <= 20
        assert size_too < size * 1.1
        assert size_too < 250_000


def test_a_long_conversation_shows_twenty_and_leads_up_and_down(client, ann, acme):
    talk, turns = long_talk(acme, ann, 60)
    parent = turns[-1]
    client.force_login(ann)
    there = f"/acme/conversations/{talk.pk}/"

    def numbers(**query):
        window = client.get(there, query).context["window"]
        return window, [shown.turn.number for shown in window.turns]

    window, shown = numbers()
    assert shown == list(range(41, 61))
    assert window.at_end
    window, shown = numbers(before=str(window.earlier))
    assert shown == list(range(21, 41))
    assert not window.at_end
    window, shown = numbers(before=str(window.earlier))
    assert shown == list(range(1, 21))
    assert window.earlier is None
    window, shown = numbers(turn=str(talk.turns.get(number=30).pk))
    assert shown == list(range(11, 31))
    assert window.end == parent.pk
