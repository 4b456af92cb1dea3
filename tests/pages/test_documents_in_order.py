"""Pages of documents in order: folders, tags, acts on many, other ways in, passages, jobs, how documents are cut."""

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse

from apps.knowledge import services
from apps.knowledge.models import Chunk, Document, Folder, Job
from tests.pages.test_list_queries import statements  # without what pages know for half a minute

TEXT = "# A\n\nFirst words.\n\n# B\n\nSecond words.\n"


@pytest.fixture
def embedder(settings, vendor):
    settings.EMBEDDING_MODEL, settings.EMBEDDING_API_KEY = "scripted-embedding", "key"
    settings.EMBEDDING_BASE_URL = vendor.url
    return vendor


@pytest.fixture
def documents(handbook, ann, embedder):
    """Two documents that are indexed."""
    made = []
    for at in range(2):
        file = ContentFile(f"{TEXT}\n\nNumber {at}.".encode())
        made.append(services.add_document(knowledge_base=handbook, file=file, name=f"{at}.md", actor=ann))
        services.ingest_document(made[-1].pk)
    return made


@pytest.fixture
def post(client, ann, acme):
    client.force_login(ann)

    def post(route, *arguments, **fields):
        return client.post(reverse(f"knowledge:{route}", args=[acme.slug, *arguments]), fields, follow=True)

    return post


@pytest.fixture
def get(client, ann, acme):
    client.force_login(ann)

    def get(route, *arguments, **query):
        return client.get(reverse(f"knowledge:{route}", args=[acme.slug, *arguments]), query).content.decode()

    return get


def test_documents_are_put_into_folders_tagged_filtered_and_brought_back(post, get, documents, handbook):
    post("create-folder", handbook.pk, name="Plans")
    folder = Folder.objects.get()
    post("act-on-documents", handbook.pk, act="move", documents=[documents[0].pk], folder=folder.pk)
    top, inside = get("show-knowledge-base", handbook.pk), get("show-knowledge-base", handbook.pk, folder=folder.pk)
    assert ("0.md" in top, "1.md" in top, "Plans" in top) == (False, True, True)
    assert ("0.md" in inside, "1.md" in inside) == (True, False)
    post("act-on-documents", handbook.pk, act="tag", documents=[documents[0].pk], tag="合同")
    assert "0.md" in get("show-knowledge-base", handbook.pk, tag="合同")
    assert "1.md" not in get("show-knowledge-base", handbook.pk, tag="合同")
    deleted = post("act-on-documents", handbook.pk, act="delete", documents=[one.pk for one in documents])
    assert not Document.objects.filter(deleted_at=None).exists()
    job = Job.objects.get(kind="delete")
    assert reverse("knowledge:restore-deleted", args=[handbook.workspace.slug, job.pk]) in deleted.content.decode()
    post("restore-deleted", job.pk)
    assert Document.objects.filter(deleted_at=None).count() == 2
    post("delete-folder", folder.pk)
    assert Document.objects.get(deleted_at=None).name == "1.md"


def test_a_batch_runs_and_its_end_is_told_once(post, get, client, documents, handbook, acme):
    post("act-on-documents", handbook.pk, act="index", documents=[one.pk for one in documents])
    services.advance_jobs()
    assert "Running" in get("list-jobs", handbook.pk)
    while services.take_turn() != "nothing waits":
        pass
    address = reverse("knowledge:tell-ends", args=[acme.slug])
    assert "2 documents are ready" in client.get(address)["HX-Trigger"]
    assert client.get(address).status_code == 204


def test_an_act_reaches_all_that_the_filter_shows_on_whichever_page(post, get, documents, handbook, monkeypatch):
    from apps.knowledge.views import knowledge_bases

    monkeypatch.setattr(knowledge_bases, "ROWS", 1)
    shown = get("show-knowledge-base", handbook.pk, q=".md")
    assert 'name="all"' in shown
    assert 'name="all"' not in get("show-knowledge-base", handbook.pk, q="1.md")
    post("act-on-documents", handbook.pk, act="tag", tag="red", all="1", q="1.md", state="")
    assert list(Document.objects.order_by("name").values_list("tags", flat=True)) == [[], ["red"]]
    post("act-on-documents", handbook.pk, act="tag", tag="blue", all="1", q="", state="")
    assert Document.objects.filter(tags__contains=["blue"]).count() == 2
    post("act-on-documents", handbook.pk, act="delete", all="1", q="", state="failed")
    assert Document.objects.filter(deleted_at__isnull=True).count() == 2  # none has failed
    post("act-on-documents", handbook.pk, act="delete", all="1", with_tag="red")
    assert Document.objects.get(deleted_at__isnull=True).name == "0.md"


def test_an_act_on_all_in_a_folder_that_is_gone_reaches_nothing(post, documents, handbook, acme, ann):
    gone = services.create_folder(knowledge_base=handbook, name="Gone", actor=ann)
    services.delete_folder(folder=gone, actor=ann)
    base = services.create_knowledge_base(workspace=acme, name="Another", actor=ann)
    elsewhere = services.create_folder(knowledge_base=base, name="Elsewhere", actor=ann)
    for folder in (gone.pk, elsewhere.pk, "x"):
        for query in (".md", ""):
            answer = post("act-on-documents", handbook.pk, act="delete", all="1", q=query, in_folder=folder)
            assert answer.status_code == 404, (folder, query)
    assert Document.objects.filter(deleted_at=None).count() == 2


def test_readers_do_not_see_what_was_switched_off_and_changes_that_found_no_passage_are_listed(
    post, get, client, documents, embedder, ann, bea, acme
):
    chunk = Chunk.objects.filter(document=documents[0], level=0).earliest("ordinal")
    services.disable_chunk(chunk=chunk, actor=ann)
    assert "First words" in get("list-chunks", documents[0].pk)
    client.force_login(bea)
    assert "First words" not in get("list-chunks", documents[0].pk)
    assert "Second words" in get("list-chunks", documents[0].pk)
    documents[0].refresh_from_db()
    file = ContentFile(b"# Other\n\nNothing of it is left.")
    services.replace_content(document=documents[0], file=file, actor=ann)
    services.ingest_document(documents[0].pk)
    client.force_login(ann)
    assert "First words" in get("list-chunks", documents[0].pk)  # listed, to be let go by hand
    client.force_login(bea)
    assert "First words" not in get("list-chunks", documents[0].pk)


def test_passages_that_no_answer_had_are_named(get, documents, handbook):
    from django.db import connection

    from apps.knowledge.models import RetrievedPassage
    from apps.knowledge.retrieval.usage import NOTE

    used, _ = Chunk.objects.filter(document=documents[0], level=0).order_by("ordinal")[:2]
    with connection.cursor() as cursor:
        for _ in range(2):
            cursor.execute(NOTE, [[used.pk, used.pk]])
    assert RetrievedPassage.objects.get().times == 2
    listed = get("check-quality", handbook.pk, kind="unused")
    assert ("First words" in listed, "Second words" in listed) == (True, True)  # of the other document
    services.index_document(document=documents[0])  # by its text the passage is known again
    listed = get("check-quality", handbook.pk, kind="unused")
    assert listed.count("First words") == 1
    services.delete_document(document=documents[0], actor=documents[0].uploaded_by)
    from apps.knowledge.storage import erase_document

    erase_document(documents[0].pk)
    assert not RetrievedPassage.objects.exists()


def test_jobs_and_quality_cost_as_many_queries_for_a_thousand_rows_as_for_ten(client, acme, documents, handbook, ann):
    client.force_login(ann)

    def cost():
        routes = ("list-jobs", "check-quality", "show-knowledge-base")
        paths = [reverse(f"knowledge:{route}", args=[acme.slug, handbook.pk]) for route in routes]
        return [len(statements(client, path)) for path in paths]

    def grow(jobs, chunks):
        start = Chunk.objects.count()
        Job.objects.bulk_create(
            Job(workspace=handbook.workspace, knowledge_base=handbook, kind="parse", scope=f"{start}-{at}",
                status="running", created_by=ann)
            for at in range(jobs)
        )  # fmt: skip
        Chunk.objects.bulk_create(
            Chunk(knowledge_base=handbook, document=documents[0], generation=1, level=0, ordinal=start + at,
                  text=f"Passage {at % 5}", content_hash=documents[0].pk, start=0, end=1)
            for at in range(chunks)
        )  # fmt: skip

    grow(10, 10)
    cost()  # what is looked up once
    few = cost()
    grow(1_000, 1_000)
    assert cost() == few
    assert max(few) <= 40


def test_a_passage_is_found_edited_and_disabled_from_its_page(post, get, documents, embedder):
    document = documents[0]
    shown = get("list-chunks", document.pk)
    assert ("First words." in shown, "Second words." in shown) == (True, True)
    assert "Second words." not in get("list-chunks", document.pk, q="first")
    first = Chunk.objects.filter(document=document, level=0).earliest("ordinal")
    post("switch-chunk", first.pk)
    assert Chunk.objects.get(pk=first.pk).disabled
    second = Chunk.objects.filter(document=document, level=0).latest("ordinal")
    post("edit-chunk", second.pk, text="# B\n\nCorrected words.")
    services.ingest_document(document.pk)
    assert "Corrected words." in get("list-chunks", document.pk)
    assert "Disabled" in get("check-quality", document.knowledge_base_id, kind="disabled")


def test_the_preview_is_what_indexing_makes(post, get, documents, handbook):
    values = {"chunker": "by_heading", "size": "60", "tokens": "0", "document": str(documents[0].pk)}
    shown = get("configure-chunker", handbook.pk, **values)
    post("save-chunker", handbook.pk, again="1", **values)
    services.advance_jobs()
    while services.take_turn() != "nothing waits":
        pass
    texts = Chunk.objects.filter(document=documents[0], level=0).order_by("ordinal").values_list("text", flat=True)
    assert len(texts) >= 2
    places = [shown.index(text.split("\n")[-1]) for text in texts]
    assert places == sorted(places)
    assert f"{len(texts)} passages" in shown
    handbook.refresh_from_db()
    assert (handbook.chunker, handbook.chunker_settings) == ("by_heading", {"size": 60, "tokens": 0})


def test_texts_and_questions_are_written_and_changed(post, get, handbook, embedder):
    post("write-text", handbook.pk, name="Rules", text="Be kind.")
    text = Document.objects.get(kind="text")
    assert "Be kind." in get("edit-text", text.pk)
    post("edit-text", text.pk, name="Rules", text="Be very kind.")
    text.refresh_from_db()
    assert text.file.read() == b"Be very kind."
    table = ContentFile(b"question,answer\nHow?,So.\n", name="t.csv")
    post("write-questions", handbook.pk, name="FAQ", question=["Why?", ""], answer=["Because.", ""], table=table)
    questions = Document.objects.get(kind="qa")
    assert "How?" in get("edit-questions", questions.pk)
    assert "Why?,Because." in get("export-questions", questions.pk)


def test_a_long_list_of_questions_is_saved_from_its_page(post, handbook, embedder):
    many = [f"Number {at}?" for at in range(1_200)]
    post("write-questions", handbook.pk, name="FAQ", question=many, answer=many)
    assert Document.objects.get(kind="qa").file.read().count(b"Number 7?") == 2


def test_the_same_name_is_asked_about_and_a_folder_comes_with_its_path(client, ann, documents, handbook, acme):
    client.force_login(ann)
    address = reverse("knowledge:upload-documents", args=[acme.slug, handbook.pk])

    def upload(content, **fields):
        file = ContentFile(content, name="0.md")
        return client.post(address, {"file": file, **fields}, headers={"accept": "application/json"})

    asked = upload(b"# New", if_same_name="ask")
    assert (asked.status_code, asked.json()["code"]) == (409, "same_name")
    assert upload(b"# New", if_same_name="replace").json()["id"] == str(documents[0].pk)
    kept = Document.objects.get(pk=upload(b"# Newer", if_same_name="keep").json()["id"])
    assert kept.name == "0 (2).md"
    below = Document.objects.get(pk=upload(b"# Below", path="a/b/0.md").json()["id"])
    assert (below.name, below.folder.name, below.folder.parent.name) == ("0.md", "b", "a")
