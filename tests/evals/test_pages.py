"""Pages of data sets: made, filled, shared, deleted, by those who may."""

import pytest
from django.urls import reverse

from apps.evals.models import Case, Dataset
from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces.services import Subject, set_restricted, share

pytestmark = pytest.mark.django_db


@pytest.fixture
def go(client, acme, ann):
    """Visit a page of acme as somebody, or send a form where ``data`` is given."""

    def go(route, *row, data=None, who=ann):
        client.force_login(who)
        address = reverse(f"evals:{route}", args=[acme.slug, *row])
        return client.get(address) if data is None else client.post(address, data)

    return go


def test_a_data_set_is_made_filled_renamed_and_deleted(go, acme, handbook):
    plan = Document.objects.create(
        workspace=acme, knowledge_base=handbook, name="plan.md", size_bytes=1, sha256="0" * 64
    )
    assert go("create-dataset", data={"name": "Ours", "kind": "retrieval"}).status_code == 422  # no base
    made = {"name": "Ours", "kind": "retrieval", "knowledge_base": handbook.pk}
    assert go("create-dataset", data=made).status_code == 302
    dataset = Dataset.objects.get()
    assert "already" in go("create-dataset", data=made).content.decode()
    assert go("add-case", dataset.pk, data={"text": "How long is leave?"}).status_code == 422
    assert go("add-case", dataset.pk, data={"text": "How long is leave?", "documents": [plan.pk]}).status_code == 302
    page = go("show-dataset", dataset.pk).content.decode()
    assert page.count("plan.md") == 2  # of the case, and to choose
    assert go("rename-dataset", dataset.pk, data={"name": "Leave"}).status_code == 302
    assert "Leave" in go("list-datasets").content.decode()
    assert go("delete-case", Case.objects.get().pk, data={}).status_code == 302
    assert go("delete-dataset", dataset.pk, data={}).status_code == 302
    assert not Dataset.objects.exists()


def test_a_data_set_is_seen_and_changed_by_those_it_is_shared_with(go, acme, ann, bea):
    assert go("create-dataset", data={"name": "Greetings", "kind": "intent"}).status_code == 302
    dataset = Dataset.objects.get()
    case = {"text": "Hello", "intent": "greeting"}
    seen = []
    for level in ("open", "restricted", "read", "manage"):
        if level == "restricted":
            set_restricted(row=dataset, restricted=True, actor=ann)
        elif level != "open":
            share(row=dataset, subject=Subject(user=bea), level=level, actor=ann)
        listed = "Greetings" in go("list-datasets", who=bea).content.decode()
        shown = go("show-dataset", dataset.pk, who=bea)
        added = go("add-case", dataset.pk, data=case, who=bea).status_code
        seen.append((level, listed, shown.status_code, added, "Add a case" in shown.content.decode()))
    assert seen == [
        ("open", True, 200, 404, False),
        ("restricted", False, 404, 404, False),
        ("read", True, 200, 404, False),
        ("manage", True, 200, 302, True),
    ]


def test_names_of_documents_that_one_may_not_read_are_left_out(go, acme, ann, bea):
    base = KnowledgeBase.objects.create(workspace=acme, name="Shut", restricted=True, created_by=ann)
    plan = Document.objects.create(workspace=acme, knowledge_base=base, name="plan.md", size_bytes=1, sha256="0" * 64)
    go("create-dataset", data={"name": "Ours", "kind": "retrieval", "knowledge_base": base.pk})
    dataset = Dataset.objects.get()
    go("add-case", dataset.pk, data={"text": "How long is leave?", "documents": [plan.pk]})
    page = go("show-dataset", dataset.pk, who=bea).content.decode()
    assert "How long is leave?" in page
    assert "plan.md" not in page
