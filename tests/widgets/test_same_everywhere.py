"""One answer in the page, a shared copy, both exports and the widget: the same numbers, and never anybody's HTML."""

import json
import re

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse

from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.knowledge.models import Document
from apps.widgets import services
from tests.conversations.test_sharing import follow

HOSTILE = "<img src=x onerror=1><svg onload=1>[x](javascript:1)"
ANSWER = f"B {HOSTILE}[[c4]] A[[c1]] again [[c4]] ghost[[c9]] web[[c6]].\n\n```html\n{HOSTILE}\n```"
CITED = re.compile(r'class="cite"[^>]* data-n="(\d+)"[^>]*>.*?(\d+)</a>', re.DOTALL)


def answered(conversation, handbook):
    """Add a turn whose answer cites chunks of two files and a page of the web, all of hostile names."""
    turn = Turn.objects.create(conversation=conversation, number=1, client_id="a", status="succeeded", question=HOSTILE)
    Message.objects.create(conversation=conversation, turn=turn, role="user", text=HOSTILE)
    answer = Message.objects.create(conversation=conversation, turn=turn, role="assistant", text=ANSWER)
    for n in (1, 2, 4, 6):
        row = Document(
            workspace=handbook.workspace, knowledge_base=handbook, name=HOSTILE, size_bytes=1, status="indexed"
        )
        row.sha256 = f"{conversation.pk.hex}{n:032}"
        row.file.save("original", ContentFile(b"a"), save=False)
        row.save()
        where = {"kind": "web", "url": f"https://a.example/{HOSTILE}"} if n == 6 else {"document_id": row.pk, "page": n}
        Citation.objects.create(
            message=answer, n=n, document=HOSTILE, heading=HOSTILE, text=HOSTILE, cited=n != 2, **where
        )
    return turn


@pytest.fixture
def turn(ann, acme, handbook):
    return answered(Conversation.objects.create(workspace=acme, owner=ann, title=HOSTILE), handbook)


def test_numbers_are_the_same_and_names_are_text(client, ann, acme, turn, widget, visitor, handbook):
    client.force_login(ann)
    talk = turn.conversation
    asked = services.conversation_of(widget, visitor[0])
    answered(asked, handbook)
    link = reverse("conversations:share-conversation", args=["acme", talk.pk])
    [shared] = re.findall(
        r"/shared/[\w-]+/", client.post(link, {"outside": "on"}, HTTP_HX_REQUEST="true").content.decode()
    )[:1]
    export = reverse("conversations:export-conversation", args=["acme", talk.pk])
    history = client.get(
        f"/widget/{widget.public_id}/history/", headers={"authorization": f"Bearer {visitor[1]}"}
    ).json()
    pages = {
        "page": client.get(reverse("conversations:show-conversation", args=["acme", talk.pk])).content.decode(),
        "turn": client.get(reverse("conversations:show-turn", args=["acme", turn.pk])).content.decode(),
        "shared inside": follow(client, shared, ann).content.decode(),
        "shared outside": follow(client, shared).content.decode(),
        "widget": history["turns"][0]["html"],
    }
    expected = [("4", "1"), ("1", "2"), ("4", "1"), ("6", "3")]
    assert {name: CITED.findall(page) for name, page in pages.items()} == dict.fromkeys(pages, expected)

    client.force_login(ann)
    written = client.get(export).content.decode()
    assert re.findall(r"\[\^1-(\d)\](?!:)", written) == ["1", "2", "1", "3"]
    assert re.findall(r"^\[\^1-(\d)\]:", written, re.MULTILINE) == ["1", "2", "3"]
    sources = json.loads(client.get(export, {"format": "json"}).content)["turns"][0]["sources"]
    assert {one["n"]: one["shown"] for one in sources} == {4: 1, 1: 2, 6: 3}

    pages |= {
        "list": client.get(
            reverse("conversations:list-conversations", args=["acme"]), {"q": "onerror"}
        ).content.decode(),
        "transcript": client.get(
            reverse("widgets:show-transcript", args=["acme", widget.pk, asked.pk])
        ).content.decode(),
        **{
            f"source {n}": client.get(
                reverse("conversations:show-source", args=["acme", turn.pk, n]), HTTP_HX_REQUEST="true"
            ).content.decode()
            for n in (1, 4, 6)
        },
    }
    live = re.compile(r"<img src=x|<svg onload|href=[\"']?javascript:", re.IGNORECASE)
    assert [name for name, page in pages.items() if live.search(page)] == []
    assert [name for name, page in pages.items() if "[[c" in page] == []
