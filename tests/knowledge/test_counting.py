"""manage.py recount_quotas, and what a base's counts tell whom."""

import io

import pytest
from django.core.management import call_command

from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces import services
from apps.workspaces.models import Quota
from apps.workspaces.services import Subject, quotas

pytestmark = pytest.mark.django_db


def add(base, person, number, **fields):
    return Document.objects.create(
        workspace=base.workspace, knowledge_base=base, name=f"{number}.md", size_bytes=10 * number, status="indexed",
        sha256=f"{number:064}", uploaded_by=person, **fields,
    )  # fmt: skip


def counters(workspace):
    rows = Quota.objects.filter(workspace=workspace).exclude(kind="turns")
    return {(row.user_id, row.kind): row.used for row in rows if row.used}


def recount():
    out = io.StringIO()
    call_command("recount_quotas", stdout=out)
    return int(out.getvalue().split()[0])


def test_counters_become_what_is_there(acme, ann, bea, mal, handbook, django_assert_max_num_queries):
    add(handbook, ann, 1)
    add(handbook, ann, 2)
    add(handbook, bea, 3)
    add(handbook, None, 4)  # of a person who is gone
    quotas.take(workspace_id=acme.pk, user_id=ann.pk, documents=50, storage=1, turns=7)
    quotas.take(workspace_id=acme.pk, user_id=mal.pk, documents=1)  # whose documents are all erased
    Quota.objects.filter(user=ann, kind="documents").update(limit=99)
    with django_assert_max_num_queries(4):
        assert recount() == 7
    assert counters(acme) == {
        (None, "documents"): 4, (None, "storage"): 100,
        (ann.pk, "documents"): 2, (ann.pk, "storage"): 30,
        (bea.pk, "documents"): 1, (bea.pk, "storage"): 30,
    }  # fmt: skip
    assert Quota.objects.get(user=ann, kind="turns").used == 7
    assert Quota.objects.get(user=ann, kind="documents").limit == 99
    assert recount() == 0


def test_counts_of_a_base_tell_only_of_documents_that_one_may_read(client, acme, ann, bea, handbook):
    add(handbook, ann, 1)
    second, third = add(handbook, ann, 2), add(handbook, ann, 3)
    for row in (second, third):
        services.set_restricted(row=row, restricted=True, actor=ann)
    services.share(row=second, subject=Subject(user=bea), level="read", actor=ann)
    for person, expected in ((ann, 3), (bea, 2)):
        base = KnowledgeBase.objects.visible_to(person).with_counts(person).get()
        assert (base.document_count, base.ready_count) == (expected, expected)
        client.force_login(person)
        assert f"{expected} documents" in client.get("/acme/knowledge-bases/").content.decode()
