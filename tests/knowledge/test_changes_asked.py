"""Before documents are read or cut anew, what people changed in their passages is counted and listed."""

from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from apps.knowledge import services
from apps.knowledge.errors import SameName
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


def table_of(client, base):
    return client.get(reverse("knowledge:show-knowledge-base", args=[base.workspace.slug, base.pk])).content.decode()


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


@pytest.fixture
def failed(changed):
    """The same document after it could not be read again: what it held answers."""
    Document.objects.filter(pk=changed.pk).update(status="error_parsing", error_code="parse_timeout")
    changed.refresh_from_db()
    return changed


def test_trying_again_asks_too_however_it_is_said(post, client, failed, handbook, ann):
    job = Job.objects.create(
        workspace=handbook.workspace, knowledge_base=handbook, kind="parse", scope="x", status="succeeded", total=1
    )
    Document.objects.filter(pk=failed.pk).update(job=job)
    ways = {
        "retry-document": (failed, {}),
        "act-on-documents": (handbook, {"act": "retry", "documents": [failed.pk]}),
        "retry-job": (job, {}),
    }
    for route, (row, fields) in ways.items():
        assert "A zebra was here." in post(route, row, **fields).content.decode(), route
        failed.refresh_from_db()
        assert (failed.status, Job.objects.count()) == ("error_parsing", 1), route
    post("retry-document", failed, confirmed="1")
    failed.refresh_from_db()
    assert failed.status == "uploaded"


def test_another_text_or_other_questions_ask_and_a_title_does_not(post, client, handbook, ann, embedder):
    text = services.add_text(knowledge_base=handbook, name="Rules", text=TEXT, actor=ann)
    pairs = [services.sources.Pair("Why?", "Because."), services.sources.Pair("How?", "So.")]
    asked = services.add_questions(knowledge_base=handbook, name="FAQ", pairs=pairs, actor=ann)
    for document in (text, asked):
        services.ingest_document(document.pk)
        services.disable_chunk(chunk=Chunk.objects.filter(document=document, level=0).earliest("ordinal"), actor=ann)
    post("edit-text", text, name="Rules of 2026", text=TEXT)
    text.refresh_from_db()
    assert (text.name, text.status) == ("Rules of 2026", "indexed")
    question = post("edit-text", text, name="Rules", text="# Part 0\n\nAll is new.").content.decode()
    assert "Sentence number 0 is said." in question
    text.refresh_from_db()
    assert text.name == "Rules of 2026"
    table = ContentFile(b"Who?,We.\n", name="t.csv")
    question = post("edit-questions", asked, name="FAQ", question=["How?"], answer=["So."], table=table)
    sent = question.content.decode()
    assert "Because." in sent
    for value in ("How?", "So.", "Who?", "We."):  # what the file held is sent again in its place
        assert f'value="{value}"' in sent
    fields = {"question": ["How?", "Who?"], "answer": ["So.", "We."]}
    post("edit-questions", asked, name="FAQ", confirmed="1", **fields)
    services.ingest_document(asked.pk)
    assert ChunkOverride.objects.get(document=asked).applied is False
    for page in (page_of(client, asked), table_of(client, handbook)):
        assert "1 change to a passage found none" in page


def test_who_replaces_a_file_is_told_of_the_passages_that_people_changed_in_it(changed, handbook, ann, ingest):
    new = {"knowledge_base": handbook, "name": changed.name, "actor": ann}
    with pytest.raises(SameName) as refused:
        services.add_document(file=ContentFile(b"# New"), if_same_name="ask", **new)
    assert refused.value.details["changed_passages"] == 2
    assert "People changed 2 passages in it" in refused.value.message
    ingest("# Other\n\nNobody changed this one.", "other.md")
    with pytest.raises(SameName) as refused:
        services.add_document(file=ContentFile(b"# New"), if_same_name="ask", **{**new, "name": "other.md"})
    assert "People changed" not in refused.value.message


def test_a_page_that_is_fetched_by_itself_keeps_changes_by_their_text_and_tells_what_it_lost(
    monkeypatch, client, handbook, ann, embedder
):
    from apps.common.outbound.fetching import Fetched
    from apps.knowledge.services import sources

    body = "<html><body><h1>Fees</h1><p>{}</p><h1>Terms</h1><p>{}</p></body></html>"
    long = [f"This part of number {at} says something long enough to be a passage. " * 20 for at in range(3)]

    def answer(*texts):
        async def fetch(url, **_more):
            return Fetched(url, 200, "text/html; charset=utf-8", body.format(*texts).encode())

        monkeypatch.setattr(sources, "fetch", fetch)

    answer(long[0], long[1])
    page = services.add_page(knowledge_base=handbook, url="https://example.com/fees", actor=ann, refresh_hours=1)
    assert page.refresh_at  # also where the first fetch fails
    services.ingest_document(page.pk)
    first, last = (found := list(Chunk.objects.filter(document=page, level=0).order_by("ordinal")))[0], found[-1]
    for chunk in (first, last):
        services.disable_chunk(chunk=chunk, actor=ann)
    answer(long[0], long[2])
    Document.objects.filter(pk=page.pk).update(refresh_at=timezone.now() - timedelta(hours=1))
    assert sources.refresh_due() == 1
    services.ingest_document(page.pk)
    assert ChunkOverride.objects.counts() == {"total": 1, "edited": 0, "disabled": 1, "lost": 1}
    client.force_login(ann)
    for shown in (page_of(client, page), table_of(client, handbook)):
        assert "1 change to a passage found none" in shown
    api = APIClient()
    api.force_login(ann)
    assert api.get(f"/api/v1/documents/{page.pk}/").json()["changed_passages"]["lost"] == 1


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
    assert ChunkOverride.objects.counts() == {"total": 2, "edited": 1, "disabled": 1, "lost": 0}
    services.configure_chunker(
        knowledge_base=handbook, chunker="by_heading", chunker_settings={"size": 100, "tokens": 0}, actor=ann
    )
    services.reindex_document(document=Document.objects.get(), actor=ann)
    services.ingest_document(changed.pk)
    assert ChunkOverride.objects.counts()["lost"] == 2
    assert ChunkOverride.objects.count() == 2


def test_the_api_tells_the_same_figure_and_lists_them(changed, ingest, handbook, ann, bea):
    ingest("# Other\n\nNobody changed this one.", "other.md")
    api = APIClient()
    api.force_login(ann)
    one = api.get(f"/api/v1/documents/{changed.pk}/").json()
    listed = api.get(f"/api/v1/knowledge-bases/{handbook.pk}/documents/").json()["results"]
    asked = api.post(f"/api/v1/documents/{changed.pk}/index/").json()
    assert one["changed_passages"] == asked["changed_passages"] == {"edited": 1, "disabled": 1, "lost": 0}
    assert [row["changed_passages"] for row in listed] == [
        {"edited": 0, "disabled": 0, "lost": 0},
        {"edited": 1, "disabled": 1, "lost": 0},
    ]
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
