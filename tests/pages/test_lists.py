"""Lists cost the same number of queries whether they are short or long."""

import hashlib

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

MOST = 8  # of the page itself; session and person are two more


@pytest.fixture
def queries(client, ann):
    client.force_login(ann)

    def queries(route, **arguments):
        client.get("/")  # so that the session is as it is later
        with CaptureQueriesContext(
            connection,
        ) as captured:
            response = client.get(reverse(route, kwargs=arguments))
        assert response.status_code == 200
        frame = ("django_session", "SAVEPOINT", "workspaces_notice")  # notices are known for half a minute
        return sum(not any(word in query["sql"] for word in frame) for query in captured)

    return queries


def add_documents(base, count, *, offset=0):
    from apps.knowledge.models import Document

    Document.objects.bulk_create(
        Document(
            workspace_id=base.workspace_id, knowledge_base=base, name=f"file {number}.md", size_bytes=1,
            sha256=hashlib.sha256(str(number).encode()).hexdigest(), status="error_parsing", error_code="empty_file",
        )
        for number in range(offset, offset + count)
    )  # fmt: skip


def test_documents(queries, acme, handbook):
    add_documents(handbook, 10)
    few = queries("knowledge:show-knowledge-base", slug=acme.slug, base_id=handbook.pk)
    add_documents(handbook, 90, offset=10)
    many = queries("knowledge:show-knowledge-base", slug=acme.slug, base_id=handbook.pk)
    assert few == many <= MOST


def test_knowledge_bases(queries, acme, ann):
    from apps.knowledge.models import KnowledgeBase

    def add(numbers):
        KnowledgeBase.objects.bulk_create(
            KnowledgeBase(workspace=acme, name=f"base {number}", created_by=ann) for number in numbers
        )

    add(range(10))
    few = queries("knowledge:list-knowledge-bases", slug=acme.slug)
    add(range(10, 100))
    many = queries("knowledge:list-knowledge-bases", slug=acme.slug)
    assert few == many <= MOST


def test_a_conversation_and_the_side_bar(queries, acme, ann):
    from apps.conversations.models import Conversation, Message, Turn

    def add(conversation, numbers):
        for number in numbers:
            turn = Turn.objects.create(
                conversation=conversation, number=number, client_id=str(number), status="succeeded", question="Why?",
                parent=conversation.turns.order_by("-number").first(),
            )  # fmt: skip
            Message.objects.create(conversation=conversation, turn=turn, role="assistant", text="So.")

    talk = Conversation.objects.create(workspace=acme, owner=ann, title="Why?")
    add(talk, range(1, 3))
    few = queries("conversations:show-conversation", slug=acme.slug, conversation_id=talk.pk)
    Conversation.objects.bulk_create(Conversation(workspace=acme, owner=ann, title=f"talk {n}") for n in range(60))
    add(talk, range(3, 30))
    many = queries("conversations:show-conversation", slug=acme.slug, conversation_id=talk.pk)
    assert few == many
    # the branch, its turns, messages, citations, events and versions; the share link; the models to choose from
    assert many <= MOST + 8
