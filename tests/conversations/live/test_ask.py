"""manage.py ask: the websocket's events on a terminal."""

import json
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from apps.conversations.engine import ENGINE
from apps.conversations.models import Conversation, Message, Turn
from tests.conversations import scripted


@pytest.fixture
def ask(people, monkeypatch, capsys):
    """Run the command with a scripted runner; return what it printed."""
    monkeypatch.setattr(ENGINE, "run_turn", scripted.run_turn)

    def ask(question, *options):
        call_command("ask", question, "--as", people.ann.email, *options, stderr=StringIO())
        return capsys.readouterr().out

    return ask


def test_streams_the_answer_then_its_sources(ask):
    assert ask("cite") == (f"{scripted.ANSWER}\n\n[[c1]] Travel policy.pdf, page 9\n[[c2]] 差旅管理办法.docx, page 3\n")


def test_json_is_the_sockets_events_and_the_tokens_are_the_answer(ask):
    events = [json.loads(line) for line in ask("cite", "--json").splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "turn.finished"
    text = "".join(event["text"] for event in events if event["type"] == "token")
    assert text == scripted.ANSWER == Message.objects.get(pk=events[-1]["message"]).text


def test_goes_on_with_a_conversation(ask):
    first = json.loads(ask("say 1", "--json").splitlines()[0])
    ask("say 1", "--conversation", first["conversation"])
    assert Turn.objects.filter(conversation=first["conversation"]).count() == 2


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("crash", []),
        (" ", []),
        ("say 1", ["--kb", "no such base"]),
        ("say 1", ["--agent", "nobody"]),
        ("say 1", ["--conversation", str(uuid4())]),
        ("say 1", ["--workspace", "mallory"]),
    ],
)
def test_a_failure_is_an_error(ask, question, options):
    with pytest.raises(CommandError):
        ask(question, *options)


def test_a_wrong_base_leaves_no_empty_conversation(ask):
    before = Conversation.objects.count()
    with pytest.raises(CommandError):
        ask("say 1", "--kb", "no such base")
    assert Conversation.objects.count() == before
