"""The audit log: mass acts, what is read through the API, operators' acts, questions; filtered and exported."""

import json
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from apps.common.errors import NotFound
from apps.knowledge import services as knowledge
from apps.knowledge.models import Chunk, Document
from apps.workspaces import audit, permissions, services
from apps.workspaces.models import AuditEvent, Role
from apps.workspaces.services import Subject, quotas
from tests.access.test_routes import whole
from tests.api.conftest import Caller
from tests.conftest import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def documents(acme, handbook, ann):
    rows = Document.objects.bulk_create(
        Document(workspace=acme, knowledge_base=handbook, name=f"plan {n}.md", size_bytes=1, sha256=f"{n:064}",
                 status="error_parsing", uploaded_by=ann)
        for n in range(3)
    )  # fmt: skip
    for row in rows:
        Chunk.objects.create(
            knowledge_base=handbook, document=row, generation=0, level=0, ordinal=0, text="# P", start=0, end=3
        )
    return rows


def logged(workspace, prefix, *names):
    rows = AuditEvent.objects.filter(workspace=workspace, action__startswith=prefix).order_by("at", "pk")
    return list(rows.values_list(*names))


def test_an_act_on_many_is_one_entry_with_how_many(acme, handbook, ann, documents):
    many = {"knowledge_base": handbook, "documents": Document.objects.filter(knowledge_base=handbook), "actor": ann}
    folder = knowledge.create_folder(knowledge_base=handbook, name="Old", actor=ann)
    knowledge.tag_documents(add=["a"], **many)
    knowledge.move_documents(folder=folder, **many)
    job = knowledge.delete_documents(**many)
    knowledge.restore_deleted(job=job, actor=ann)
    entries = logged(acme, "documents.", "action", "target_name", "right", "details__count")
    assert entries == [
        (f"documents.{act}", "Handbook", "owner", 3) for act in ("tagged", "moved", "deleted", "restored")
    ]
    assert logged(acme, "folder.", "action", "target_name") == [("folder.made", "Old")]


def test_what_is_read_through_the_api_is_logged_with_the_right_that_opened_it(acme, handbook, ann, bea, documents):
    _key, secret = services.create_api_key(workspace=acme, name="k", scopes=["knowledge:read"], actor=bea)
    reader = Caller(headers={"Authorization": f"Bearer {secret}"})
    first, second, third = documents
    services.set_restricted(row=second, restricted=True, actor=ann)
    services.set_restricted(row=third, restricted=True, actor=ann)
    services.share(row=second, subject=Subject(user=bea), level="read", actor=ann)
    chunk = Chunk.objects.get(document=first)
    assert reader.get(f"chunks/{chunk.pk}").status_code == 200
    assert reader.get(f"documents/{second.pk}/chunks").status_code == 200
    assert reader.get(f"documents/{third.pk}/chunks").status_code == 404
    assert len(reader.get("chunks").json()["results"]) == 2
    seen = logged(acme, "passage.opened", "kind", "actor", "target_id", "right")
    assert seen == [("key", bea.pk, first.pk, "viewer")]
    opened = logged(acme, "document.opened", "target_id", "right", "credential_id")
    assert sorted(opened) == sorted(
        [(second.pk, "viewer, share", _key.pk), (first.pk, "viewer", _key.pk), (second.pk, "viewer, share", _key.pk)]
    )


def test_a_share_that_lets_a_member_change_something_is_named(acme, handbook, ann, bea, documents):
    services.share(row=handbook, subject=Subject(user=bea), level="manage", actor=ann)
    knowledge.delete_document(document=documents[0], actor=bea)
    assert logged(acme, "document.deleted", "actor", "right") == [(bea.pk, "viewer, share")]


def test_what_an_operator_does_stands_in_the_log_of_the_workspace(client, acme, ann, bea):
    operator = person("operator@example.com")
    operator.is_staff = operator.is_superuser = True
    operator.save()
    client.force_login(operator)
    people = reverse("admin:workspaces_user_changelist")
    for act in ("lock", "unlock"):
        client.post(people, {"action": act, "_selected_action": [str(bea.pk)]})
    bea.refresh_from_db()
    assert bea.is_active
    client.post(people, {"action": "lock", "_selected_action": [str(operator.pk)]})
    operator.refresh_from_db()
    assert operator.is_active  # nobody locks themselves out
    quotas.take(workspace_id=acme.pk, user_id=None, turns=1)
    quota = acme.quotas.get()
    client.post(reverse("admin:workspaces_quota_change", args=[quota.pk]), {"limit": "7"})
    events = AuditEvent.objects.filter(workspace=acme, kind="operator").order_by("at")
    assert [(one.action, one.actor_id, one.right) for one in events] == [
        ("person.locked", operator.pk, "operator"),
        ("person.unlocked", operator.pk, "operator"),
        ("quota.changed_by_operator", operator.pk, "operator"),
    ]
    assert "limit" in str(events[2].details).lower()


def test_a_visit_for_support_acts_as_operator(acme, handbook, ann, documents, client):
    operator = person("operator@example.com")
    operator.is_staff = True
    operator.save()
    services.begin_support(workspace=acme, operator=operator, reason="ticket 7")
    client.force_login(operator)
    client.get(reverse("knowledge:show-document", args=["acme", documents[0].pk]))
    assert logged(acme, "document.opened", "kind", "right") == [("operator", "support")]


@pytest.mark.django_db(transaction=True)
def test_page_export_and_api_show_the_same_entries_and_filters(acme, ann, bea, client):
    old = timezone.now() - timedelta(days=40)
    AuditEvent.objects.bulk_create(
        AuditEvent(workspace=acme, kind=kind, actor=bea, action=action, target_name=name)
        for kind, action, name in (
            ("key", "a.one", "first"),
            ("person", "a.two", "second"),
            ("person", "b.one", "third"),
        )
    )
    AuditEvent.objects.bulk_create([AuditEvent(workspace=acme, kind="key", action="a.old", target_name="x")])
    client.force_login(ann)
    api = Caller()
    api.force_login(ann)
    since = timezone.now() - timedelta(days=1)
    for asked, names in (
        ({"action": "a.one"}, {"a.one"}),
        ({"action": "a."}, {"a.one", "a.two", "a.old"}),
        ({"kind": "key"}, {"a.one", "a.old"}),
        ({"actor": str(bea.pk), "action": "b."}, {"b.one"}),
        ({"q": "second"}, {"a.two"}),
        ({"until": old.isoformat()}, set()),
        ({"since": since.isoformat(), "action": "b.one"}, {"b.one"}),
    ):
        found = api.get("audit-events", {**asked, "workspace": str(acme.pk)}).json()["results"]
        assert {row["action"] for row in found} == names, asked
        lines = b"".join(whole(api.get("audit-events/export", asked))).splitlines()
        assert {json.loads(line)["action"] for line in lines} == names, asked
    page, export = (reverse(f"workspaces:{name}", args=["acme"]) for name in ("show-audit-log", "export-audit-log"))
    shown = client.get(page, {"kind": "key"}).content.decode()
    assert ("a.one" in shown, "a.two" in shown, "?kind=key" in shown) == (True, False, True)
    tomorrow = (timezone.localdate() + timedelta(days=2)).isoformat()
    assert "a.one" not in client.get(page, {"since": tomorrow}).content.decode()
    assert client.get(page, {"since": "nonsense", "kind": "x"}).status_code == 200
    lines = b"".join(whole(client.get(export, {"q": "second"}))).splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["a.two"]
    assert api.get("audit-events", {"action": "audit_log.exported"}).json()["results"]


def test_what_an_entry_is_about_is_said_in_the_readers_language(acme, ann, handbook, client):
    """The row holds the kind's name in no language, whichever was spoken when it was made."""
    with translation.override("zh-hans"):
        audit.record("base.looked_at", who=ann, workspace_id=acme.pk, target=handbook)
    assert AuditEvent.objects.get(action="base.looked_at").target_kind == "knowledgebase"
    client.force_login(ann)
    for language, word in (("en", "knowledge base"), ("zh-hans", "知识库")):
        client.cookies["ks_language"] = language
        page = client.get(reverse("workspaces:show-audit-log", args=["acme"]), {"q": "base.looked_at"})
        assert f'<span class="muted">{word}</span>' in page.content.decode(), language


def test_those_who_do_not_run_a_workspace_see_no_log(acme, ann, bea):
    api = Caller()
    api.force_login(bea)
    assert api.get("audit-events").json()["results"] == []
    assert api.get("audit-events/export").status_code == 403
    services.set_membership(workspace=acme, user=bea, role=Role.ADMIN)
    assert api.get("audit-events").json()["results"]


@pytest.mark.django_db(transaction=True)
def test_an_export_holds_a_page_at_a_time_and_breaks_off_where_the_right_ends(acme, ann, bea, monkeypatch):
    AuditEvent.objects.bulk_create([AuditEvent(workspace=acme, kind="key", action="a.b") for _ in range(23)])
    services.set_membership(workspace=acme, user=bea, role=Role.ADMIN)
    there, taken = AuditEvent.objects.filter(workspace=acme).count(), []
    page = audit._page
    monkeypatch.setattr(audit, "PAGE", 5)
    monkeypatch.setattr(audit, "_page", lambda *given: taken.append(page(*given)) or taken[-1])
    events = AuditEvent.objects.visible_to(bea).filter(workspace=acme)
    allowed = partial(permissions.require, "see_audit_log", actor=bea, workspace=acme)

    async def export(end=None):
        """Return the lines, and how many pages had been asked for when the first came."""
        lines, first = [], 0
        async for part in audit.as_lines(events, allowed=allowed):
            first = first or len(taken)
            lines += part.splitlines()
            if end is not None:
                await end()
        return lines, first

    lines, first = async_to_sync(export)()
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) == there
    assert (first, max(map(len, taken)), len(taken)) == (1, 5, there // 5 + 1)

    async def leave():
        await acme.memberships.filter(user=bea).adelete()

    taken.clear()
    with pytest.raises(NotFound):
        async_to_sync(export)(leave)
    assert len(taken) == 1


@pytest.mark.django_db(transaction=True)
def test_a_search_on_a_page_is_logged_with_what_it_showed(acme, ann, bea, handbook, client, documents):
    """Not the words that were looked for: the log holds no content."""
    client.force_login(bea)
    entry = (bea.pk, "viewer", {"documents": []})
    for times, route in enumerate(("search-documents", "try-search")):
        address = reverse(f"knowledge:{route}", args=["acme"])
        client.get(address)  # nothing is asked yet
        assert len(logged(acme, "bases.searched", "actor")) == times
        assert client.get(address, {"q": "zebrafinch", "kb": str(handbook.pk)}).status_code == 200
        assert logged(acme, "bases.searched", "actor", "right", "details") == [entry] * (times + 1)
    assert "zebrafinch" not in str(list(AuditEvent.objects.filter(workspace=acme).values()))


def test_acts_beside_the_main_ones_stand_in_the_log_too(acme, ann, bea, handbook, client, documents):
    """What others shut, opened, scheduled, shared or read of others: each page and service by its entry."""
    from apps.conversations.models import Conversation, Turn
    from apps.knowledge.models import Job

    first = documents[0]
    Document.objects.filter(pk=first.pk).update(error_code="password_required")
    talk = Conversation.objects.create(workspace=acme, owner=ann)
    Turn.objects.create(conversation=talk, number=1, client_id="c", status="succeeded", question="Why?")
    client.force_login(ann)

    def go(route, *arguments, **data):
        there = reverse(route, args=["acme", *arguments])
        assert (client.post(there, data) if data else client.get(there)).status_code in (200, 302), route
        return AuditEvent.objects.filter(workspace=acme).latest("at").action

    job = Job.objects.create(
        workspace=acme, knowledge_base=handbook, kind="parse", scope="x", created_by=ann, status="queued"
    )
    page = knowledge.add_page(knowledge_base=handbook, url="https://example.com/a", actor=ann)
    assert logged(acme, "document.added", "target_id", "right") == [(page.pk, "owner")]
    done = [
        go("knowledge:list-chunks", documents[1].pk),
        go("knowledge:add-synonyms", words="laptop, notebook"),
        go("knowledge:save-profile", handbook.pk, settings="{}"),
        go("knowledge:cancel-job", job.pk, x="1"),
        go("knowledge:unlock-document", first.pk, password="pw"),
        go("knowledge:refresh-page", page.pk, refresh_hours="24"),
        go("conversations:share-conversation", talk.pk, outside="on"),
    ]
    link = talk.share.token
    outside = Client()
    for _time in range(2):  # each reader once an hour
        assert outside.get(f"/shared/{link}/").status_code == 200
    done.append(AuditEvent.objects.filter(workspace=acme).latest("at").action)
    done.append(go("conversations:unshare-conversation", talk.pk, x="1"))
    assert done == [
        "document.opened", "synonyms.added", "base.changed", "job.cancelled", "document.unlocked",
        "document.scheduled", "conversation.shared", "conversation.opened_by_link", "conversation.unshared",
    ]  # fmt: skip
    assert len(logged(acme, "conversation.opened_by_link", "kind")) == 1
