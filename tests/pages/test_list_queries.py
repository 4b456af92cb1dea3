"""What every page and every answer of the API costs in queries: the same for 10 rows as for 1,000, lists at most eight.

``query_counts.toml`` beside this file holds the counts; a change of one, or a new route, fails until the file says so.
``QUERY_COUNTS=write pytest tests/pages/test_list_queries.py`` writes it; read the difference before you commit it.
"""

import os
import tomllib
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient

from tests.access.tables import EXPECTED
from tests.access.world import World
from tests.api.test_access import addresses

MOST = 8
FRAME = ("django_session", "SAVEPOINT", "RELEASE")  # of any page behind a session, and of the test itself
BASELINE = Path(__file__).with_name("query_counts.toml")
# Pages that are no list of one kind of thing: what they show is of many tables, and each of them is one query.
NO_LISTS = {}


def fill(world, count):
    """Put as many rows into everything that is listed somewhere."""
    from apps.agents.models import Agent
    from apps.conversations.models import Attachment, Citation, Conversation, Message, Turn
    from apps.knowledge.models import Chunk, Document, Folder, Job, KnowledgeBase, Synonyms
    from apps.memory.models import MemoryItem
    from apps.models.models import Budget, ModelConfig
    from apps.widgets.models import Visitor, Widget
    from apps.workspaces.models import (
        ApiKey,
        AuditEvent,
        Department,
        DepartmentMember,
        Invitation,
        Membership,
        Quota,
        User,
    )  # fmt: skip

    ann, things, numbers = world.ann, world.things, range(count)

    def word():
        return uuid4().hex

    def made(kind, workspace=True, **row):
        here = {"workspace": world.acme} if workspace else {}
        return kind.objects.bulk_create(
            [
                kind(**here, **{name: value() if callable(value) else value for name, value in row.items()})
                for _ in numbers
            ]
        )

    people = made(User, workspace=False, email=lambda: f"{word()}@example.com")
    members = Membership.objects.bulk_create(
        [Membership(workspace=world.acme, user=one, role="viewer") for one in people]
    )
    groups = [Department(workspace=world.acme, name=word()) for _ in numbers]
    for group in groups:
        group.lineage = [group.pk]
    Department.objects.bulk_create(groups)
    DepartmentMember.objects.bulk_create(
        [DepartmentMember(department=group, membership=one) for group, one in zip(groups, members, strict=True)]
    )
    Quota.objects.bulk_create([Quota(workspace=world.acme, user=one, kind="turns") for one in people])
    made(ApiKey, user=ann, name="k", start="ks_", digest=word, scopes=[])
    made(AuditEvent, actor=ann, kind="person", action="a.b")
    made(Invitation, email=lambda: f"{word()}@example.com", role="viewer", digest=word, invited_by=ann)
    made(KnowledgeBase, name=word)
    base = {"knowledge_base": world.handbook}
    documents = made(Document, **base, name="d", size_bytes=1, sha256=lambda: word() * 2)
    folders = [Folder(workspace=world.acme, **base, name=word()) for _ in numbers]
    for folder in folders:
        folder.lineage = [folder.pk]
    Folder.objects.bulk_create(folders)
    made(Job, **base, kind="parse", scope=word, state="succeeded", created_by=ann)
    passage = {"document_id": things.document_id, "generation": 0, "level": 0, "text": "x", "start": 0, "end": 1}
    last = Chunk.objects.filter(document_id=things.document_id).count()
    Chunk.objects.bulk_create([Chunk(**base, **passage, ordinal=last + n) for n in numbers])
    made(Synonyms, words=lambda: [word(), word()])
    made(MemoryItem, user=ann, kind="fact", text=word)
    made(ModelConfig, kind="chat", name=word, base_url="http://127.0.0.1:9/v1")
    made(Budget, amount=1, scope="user", subject=uuid4)
    made(Agent, name=word)
    made(Widget, name=word)
    made(Attachment, owner=ann, name="a", kind="document", media_type="text/plain", size_bytes=1)
    made(Conversation, owner=ann, title="t")
    visitors = made(Visitor, workspace=False, widget_id=world.more.widget_id, origin="https://shop.example")
    asked = Conversation.objects.bulk_create(
        [Conversation(workspace=world.acme, widget_id=world.more.widget_id, visitor_id=one.pk) for one in visitors]
    )
    for talks, agent in ((asked, None), (made(Conversation, owner=ann, agent_id=world.more.agent_id, title="t"), 1)):
        del agent
        turns = [
            Turn(conversation=one, number=1, client_id=word(), status="succeeded", question="Why?") for one in talks
        ]
        Turn.objects.bulk_create(turns)
        Message.objects.bulk_create(
            [Message(conversation=one.conversation, turn=one, role="assistant", text="So.") for one in turns]
        )
    answer = Message.objects.get(pk=things.message_id)
    first = Citation.objects.filter(message=answer).count() + 1
    Citation.objects.bulk_create(
        [Citation(message=answer, n=first + n, document="d", document_id=documents[n].pk, text="x") for n in numbers]
    )


def count(client, path):
    """Return the queries of a page; None for what is no page of its own (a redirect, a file, a refusal)."""
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
        shown = b"" if answer.streaming else answer.content
    if answer.status_code != 200 or answer.streaming or not shown:
        return None
    return [query["sql"] for query in queries if not any(word in query["sql"] for word in FRAME)]


def places(world):
    """Every page and every address of the API that can be read, by name."""
    pages, api = world.enter("owner"), APIClient()
    api.force_login(world.ann)
    for method, route in EXPECTED:
        if method == "get" and ":" in route:
            yield route, pages, world.path(route)
    for name, arguments, methods in addresses():
        if "GET" in methods:
            given = {argument: getattr(world.things, argument) for argument in arguments}
            yield f"api:{name}", api, reverse(f"api:{name}", kwargs=given)


@pytest.mark.django_db
def test_a_page_costs_the_same_however_much_there_is(acme, ann, bea, mal, handbook):
    world = World(acme, ann, bea, mal, handbook)
    counted = []
    for rows in (10, 990):
        fill(world, rows)
        cache.clear()
        counted.append({name: count(client, path) for name, client, path in places(world)})
    few, many = ({name: sql for name, sql in found.items() if sql is not None} for found in counted)
    found = {name: len(sql) for name, sql in many.items()}
    if os.environ.get("QUERY_COUNTS") == "write":
        BASELINE.write_text("".join(f'"{name}" = {n}\n' for name, n in sorted(found.items())))
    grows = {name: (len(few[name]), found[name]) for name in found if len(few.get(name, ())) != found[name]}
    assert grows == {}
    over = {name: many[name] for name, n in found.items() if n > MOST and name not in NO_LISTS}
    assert {name: [sql[:200] for sql in sqls] for name, sqls in over.items()} == {}
    assert found == tomllib.loads(BASELINE.read_text())
