"""Before documents are read or cut anew, what people changed in their passages is counted and listed."""

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from apps.knowledge import services
from apps.knowledge.models import Chunk, ChunkOverride, Document, Job

TEXT = "\n\n".join(f"# Part {at}\n\n" + f"Sentence number {at} is said. " * 20 for at in range(3))


@pytest.fixture
def changed(ingest, ann):
    """A document of which one passage is edited and another disabled, both in the generation that answers."""
    document = ingest(TEXT)
    first, second, _ = Chunk.objects.filter(document=document, level=0).order_by("ordinal")
    services.disable_chunk(chunk=first, actor=ann)
    services.edit_chunk(chunk=second, text="# Part 1\n\nA zebra was here.", actor=ann)
    services.ingest_document(document.pk)
    document.refresh_from_db()
    return document


@pytest.fixture
def post(client, ann, acme):
    client.force_login(ann)

    def post(route, row, **fields):
        return client.post(reverse(f"knowledge:{route}", args=[acme.slug, row.pk]), fields, follow=True)

    return post


def page_of(client, document):
    return client.get(reverse("knowledge:show-document", args=[document.workspace.slug, document.pk])).content.decode()


def test_the_page_says_how_many_and_the_confirmation_lists_them(post, client, changed, ingest, handbook):
    plain = ingest("# Other\n\nNobody changed this one.", "other.md")
    shown = page_of(client, changed)
    assert "1 edited passage" in shown
    assert "1 disabled passage" in shown
    assert "edited passage" not in page_of(client, plain)
    both = [changed.pk, plain.pk]
    for act in ("parse", "index"):
        asked = post("act-on-documents", handbook, act=act, documents=both).content.decode()
        assert not Job.objects.exists()
        for words in ("A zebra was here.", "Sentence number 0 is said.", "Edited", "Disabled", "1 document", "kept"):
            assert words in asked, words
        assert "Nobody changed" not in asked
        for pk in both:  # the same form goes out again
            assert f'name="documents" value="{pk}"' in asked
    answer = post("act-on-documents", handbook, act="parse", documents=both, from_document=changed.pk, confirmed="1")
    assert answer.redirect_chain[-1][0] == reverse(
        "knowledge:show-document", args=[handbook.workspace.slug, changed.pk]
    )
    assert Job.objects.get().total == 2


def test_where_nothing_was_changed_nobody_is_asked(post, ingest, handbook):
    plain = ingest(TEXT)
    post("act-on-documents", handbook, act="parse", documents=[plain.pk])
    assert Job.objects.get().total == 1


def test_settings_that_cut_anew_ask_and_change_nothing_until_they_are_answered(post, changed, handbook):
    values = {"chunker": "by_heading", "size": "100", "again": "1"}
    assert "Save and cut anew" in post("save-chunker", handbook, **values).content.decode()
    handbook.refresh_from_db()
    assert (handbook.chunker, Job.objects.count()) == ("parent_child", 0)
    post("save-chunker", handbook, confirmed="1", **values)
    handbook.refresh_from_db()
    assert (handbook.chunker, handbook.chunker_settings, Job.objects.count()) == ("by_heading", {"size": 100}, 1)


def test_what_is_kept_and_what_is_dropped_is_what_was_said(changed, handbook, ann):
    """The same text again keeps both; cut otherwise, they are listed as not applied."""
    services.reparse_document(document=changed, actor=ann)
    services.ingest_document(changed.pk)
    assert ChunkOverride.objects.in_use().counts() == {"total": 2, "edited": 1, "disabled": 1}
    services.configure_chunker(
        knowledge_base=handbook, chunker="by_heading", chunker_settings={"size": 100, "tokens": 0}, actor=ann
    )
    services.reindex_document(document=Document.objects.get(), actor=ann)
    services.ingest_document(changed.pk)
    assert ChunkOverride.objects.in_use().counts()["total"] == 0
    assert ChunkOverride.objects.count() == 2


def test_the_api_tells_the_same_figure_and_lists_them(changed, ingest, handbook, ann, bea):
    ingest("# Other\n\nNobody changed this one.", "other.md")
    api = APIClient()
    api.force_login(ann)
    one = api.get(f"/api/v1/documents/{changed.pk}/").json()
    listed = api.get(f"/api/v1/knowledge-bases/{handbook.pk}/documents/").json()["results"]
    asked = api.post(f"/api/v1/documents/{changed.pk}/index/").json()
    assert one["changed_passages"] == asked["changed_passages"] == {"edited": 1, "disabled": 1}
    assert [row["changed_passages"] for row in listed] == [{"edited": 0, "disabled": 0}, {"edited": 1, "disabled": 1}]
    address = f"/api/v1/knowledge-bases/{handbook.pk}/changed-passages/"
    for query in ({}, {"document": str(changed.pk)}):
        found = api.get(address, query).json()["results"]
        assert [(row["text"][-10:], row["disabled"]) for row in found] == [(" was here.", False), ("", True)]
    assert api.get(address, {"document": str(handbook.pk)}).json()["results"] == []
    api.force_login(bea)
    assert api.get(address).status_code == 404


def test_the_list_of_documents_costs_as_many_queries_with_changes_as_without(changed, handbook, ann):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    api = APIClient()
    api.force_login(ann)
    address = f"/api/v1/knowledge-bases/{handbook.pk}/documents/"

    def cost():
        with CaptureQueriesContext(connection) as queries:
            api.get(address)
        return len(queries)

    cost()
    few = cost()
    Document.objects.bulk_create(
        Document(
            workspace=handbook.workspace, knowledge_base=handbook, name=f"{at}.md", size_bytes=1, sha256=f"{at:064}"
        )
        for at in range(30)
    )
    assert cost() == few
