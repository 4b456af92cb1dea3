"""A list page runs the same queries for 10 rows as for 1,000, and at most eight."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.conversations.models import Conversation
from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces import services
from apps.workspaces.models import ApiKey, AuditEvent, Department, DepartmentMember, Membership, Quota, User

pytestmark = pytest.mark.django_db

MOST = 8
# of any page behind a session, of the test itself, and what pages know for half a minute
FRAME = ("django_session", "SAVEPOINT", "RELEASE", "workspaces_notice")
ROUTES = (
    "workspaces:list-members",
    "workspaces:list-departments",
    "workspaces:list-api-keys",
    "workspaces:show-audit-log",
    "workspaces:show-limits",
    "knowledge:list-knowledge-bases",
    "knowledge:show-knowledge-base",
    "conversations:list-conversations",
)


def fill(workspace, ann, handbook, count):
    """Put as many rows into every list."""
    people = User.objects.bulk_create([User(email=f"{uuid4().hex}@example.com") for _ in range(count)])
    members = Membership.objects.bulk_create(
        [Membership(workspace=workspace, user=user, role="viewer") for user in people]
    )
    groups = [Department(workspace=workspace, name=uuid4().hex) for _ in range(count)]
    for group in groups:
        group.lineage = [group.pk]
    Department.objects.bulk_create(groups)
    DepartmentMember.objects.bulk_create(
        [DepartmentMember(department=group, membership=one) for group, one in zip(groups, members, strict=True)]
    )
    for kind, rows in (
        (
            ApiKey,
            [{"user": ann, "name": "k", "start": "ks_", "digest": uuid4().hex, "scopes": []} for _ in range(count)],
        ),
        (AuditEvent, [{"actor": ann, "kind": "person", "action": "a.b"} for _ in range(count)]),
        (Quota, [{"user": user, "kind": "turns"} for user in people]),
        (KnowledgeBase, [{"name": uuid4().hex} for _ in range(count)]),
        (Conversation, [{"owner": ann, "title": "t"} for _ in range(count)]),
        (
            Document,
            [
                {"knowledge_base": handbook, "name": "d", "size_bytes": 1, "sha256": uuid4().hex * 2}
                for _ in range(count)
            ],
        ),
    ):
        kind.objects.bulk_create([kind(workspace=workspace, **row) for row in rows])


@pytest.mark.parametrize("route", ROUTES)
def test_a_list_costs_the_same_however_long_it_is(client, acme, ann, handbook, route):
    client.force_login(ann)
    services.create_api_key(workspace=acme, name="Key", scopes=["knowledge:read"], actor=ann)
    arguments = [acme.slug, handbook.pk] if route == "knowledge:show-knowledge-base" else [acme.slug]
    counted = []
    for rows in (10, 990):
        fill(acme, ann, handbook, rows)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse(route, args=arguments)).status_code == 200
        counted.append([query["sql"] for query in queries if not any(word in query["sql"] for word in FRAME)])
    few, many = map(len, counted)
    assert few == many
    assert many <= MOST, "\n".join(sql[:160] for sql in counted[1])
