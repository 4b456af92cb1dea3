"""What is left when something ends, and what one can take along: grants, archives, several workspaces, the log."""

import io
import json
import zipfile

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.urls import reverse

from apps.agents.models import Agent
from apps.evals.keeping import add_case, create_dataset
from apps.evals.models import Dataset
from apps.knowledge.models import Document, Folder, KnowledgeBase
from apps.models.models import ModelConfig
from apps.workspaces import erasing, exporting, services
from apps.workspaces.models import AuditEvent, Department, Role, User, Workspace
from apps.workspaces.services import Subject
from apps.workspaces.services.sharing import levels_of, share_models, shared_kind
from tests.api.conftest import Caller, plan  # noqa: F401
from tests.conftest import person

pytestmark = pytest.mark.django_db


def one_of(kind, acme, handbook):
    """Make a row of a kind that can be shared."""
    if kind is Folder:
        return Folder.objects.create(workspace=acme, knowledge_base=handbook, name="F", lineage=[])
    fields = {
        KnowledgeBase: {"name": "Shared"},
        Document: {"knowledge_base": handbook, "name": "d.md", "size_bytes": 1, "sha256": "1" * 64},
        Agent: {"name": "Shared"},
        ModelConfig: {"kind": "chat", "name": "m", "base_url": "https://a.example/v1"},
        Dataset: {"name": "Shared", "kind": "intent"},
    }[kind]
    return kind.objects.create(workspace=acme, **fields)


def grants():
    return sum(model.objects.count() for model in share_models())


@pytest.mark.parametrize("end", ["rows", "people", "departments", "workspace"])
def test_no_grant_outlives_either_of_its_ends_however_it_goes(acme, ann, bea, handbook, end):
    kinds = [shared_kind(model) for model in share_models()]
    department = services.create_department(workspace=acme, name="D", actor=ann)
    rows = [one_of(kind, acme, handbook) for kind in kinds]
    before = grants()
    for row in rows:
        for subject in (Subject(user=bea), Subject(department=department), Subject(role=Role.MEMBER)):
            services.share(row=row, subject=subject, level=levels_of(type(row))[-1], actor=ann)
    assert grants() == before + 3 * len(kinds)
    if end == "rows":
        for kind, row in zip(kinds, rows, strict=True):
            kind.objects.filter(pk=row.pk).delete()  # many at once, as the sweeper does
        assert grants() == before
    elif end == "people":
        User.objects.filter(pk=bea.pk).delete()
        assert grants() == before + 2 * len(kinds)
    elif end == "departments":
        Department.objects.all().delete()
        assert grants() == before + 2 * len(kinds)
    else:
        services.delete_workspace(workspace=acme, actor=ann)
        assert grants() == 0
    # guardian's own tables, which know rows by a text, are never used
    for name in ("UserObjectPermission", "GroupObjectPermission"):
        assert not apps.get_model("guardian", name).objects.exists()
    ours = Permission.objects.filter(content_type__app_label__in=("knowledge", "agents", "models", "evals"))
    assert not ours.filter(user__isnull=False).exists()


def archive_of(workspace, actor):
    """Return the files of a workspace's archive by their paths."""
    pieces = list(exporting._pieces(workspace, actor))
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_an_archive_holds_what_its_exporter_may_read(client, acme, ann, bea, handbook, plan):  # noqa: F811
    hidden = KnowledgeBase.objects.create(workspace=acme, name="Hidden", restricted=True)
    create_dataset(workspace=acme, name="Greetings", kind="intent", actor=ann)
    add_case(dataset=Dataset.objects.get(), text="Good morning", intent="greeting", actor=ann)
    files = archive_of(acme, ann)
    assert {"people.jsonl", "departments.jsonl", "datasets.jsonl", "dataset-cases.jsonl"} < set(files)
    whole = b"".join(files.values())
    for text in (b"ann@example.com", b"Hidden", b"Greetings", b"Good morning", b"# Plan"):
        assert text in whole, text
    of_viewer = b"".join(archive_of(acme, bea).values())
    assert b"Hidden" not in of_viewer
    assert str(hidden.pk).encode() not in of_viewer
    assert AuditEvent.objects.filter(workspace=acme, action="workspace.exported").count() == 2
    client.force_login(bea)
    assert client.get(reverse("workspaces:export-workspace", args=["acme"])).status_code == 403
    client.force_login(ann)
    answer = client.get(reverse("workspaces:export-workspace", args=["acme"]))
    assert answer["Content-Disposition"] == 'attachment; filename="acme.zip"'


def test_a_person_in_several_workspaces_says_which_they_mean(client, acme, ann, mal):
    theirs = mal.workspaces.get()
    services.set_membership(workspace=theirs, user=ann, role=Role.MEMBER)
    api = Caller()
    api.force_login(ann)
    refused = api.post("knowledge-bases", {"name": "Where?"})
    assert (refused.status_code, set(refused.json()["details"]["fields"])) == (422, {"workspace"})
    made = api.post("knowledge-bases", {"name": "There", "workspace": str(theirs.pk)})
    assert (made.status_code, made.json()["workspace"]) == (201, str(theirs.pk))
    assert api.post("knowledge-bases", {"name": "x", "workspace": str(acme.pk)}).status_code == 201
    client.force_login(ann)
    page = client.get(reverse("workspaces:list-members", args=[theirs.slug])).content.decode()
    assert "Acme" in page  # the way back
    member = api.get(f"workspaces/{theirs.pk}/members").json()["results"]
    own = next(row for row in member if row["user"] == str(ann.pk))
    assert api.delete(f"workspaces/{theirs.pk}/members/{own['id']}").status_code == 204
    assert list(Workspace.objects.visible_to(ann)) == [acme]
    assert api.get(f"workspaces/{theirs.pk}").status_code == 404


def test_a_log_that_is_past_its_time_goes_and_no_other(acme, ann, mal):
    other = AuditEvent.objects.filter(workspace=mal.workspaces.get()).count()
    Workspace.objects.filter(pk=acme.pk).update(keep_audit_days=0)
    count = AuditEvent.objects.filter(workspace=acme).count()
    assert erasing.expire_audit_log() == count > 0
    assert not AuditEvent.objects.filter(workspace=acme).exists()
    assert AuditEvent.objects.exclude(workspace=acme).count() == other > 0


def test_owners_alone_hand_over_and_delete_through_the_api(acme, ann, bea):
    admin = person("adi@example.com")
    services.set_membership(workspace=acme, user=admin, role=Role.ADMIN)
    places = {
        name: f"workspaces/{acme.pk}/members/{pk}" for name, pk in acme.memberships.values_list("user__email", "pk")
    }
    api = Caller()
    api.force_login(admin)
    assert api.delete(f"workspaces/{acme.pk}").status_code == 403
    assert api.patch(places["bea@example.com"], {"role": "owner"}).status_code == 403
    assert api.delete(places["ann@example.com"]).status_code == 403
    assert api.post(f"{places['bea@example.com']}/transfer").status_code == 403
    assert api.patch(places["bea@example.com"], {"role": "member"}).json()["role"] == "member"
    api.force_login(ann)
    assert api.delete(places["ann@example.com"]).json()["code"] == "last_owner"
    assert api.post(f"{places['bea@example.com']}/transfer").json()["role"] == "owner"
    assert api.delete(f"workspaces/{acme.pk}").status_code == 403  # an admin now
    api.force_login(bea)
    assert api.delete(f"workspaces/{acme.pk}").status_code == 204
    assert json.loads(api.get("workspaces").content)["results"] == []
