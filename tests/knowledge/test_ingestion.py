"""From an uploaded file to rows: what each step leaves, and what a failure leaves."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone
from django_q.models import OrmQ

from apps.common.errors import KnowSphereError
from apps.knowledge import services
from apps.knowledge.errors import failure
from apps.knowledge.models import Chunk, ChunkVector, Document, Posting
from apps.knowledge.services.ingestion import index_document, parse_document
from apps.knowledge.services.sweeping import erase_deleted, sweep_files
from apps.models.models import UsageRecord
from tests.vendor import Reply

GUIDE = "# Guide\n\n" + "The heating is switched on in October. " * 60 + "\n\n## Summer\n\nIt stays off.\n"
Status = Document.Status


def rows(document):
    return (
        Chunk.objects.filter(document=document).count(),
        ChunkVector.objects.filter(document=document).count(),
        Posting.objects.filter(document_id=document.pk).count(),
    )


def test_a_file_becomes_chunks_vectors_and_postings(ingest, handbook):
    document = ingest(GUIDE)
    assert (document.status, document.error_code, document.generation) == (Status.INDEXED, "", 1)
    chunks = list(Chunk.objects.filter(document=document).order_by("start", "level"))
    markdown = default_storage.open(document.markdown_key).read().decode()
    assert all(markdown[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert {chunk.heading for chunk in chunks} == {"Guide", "Guide > Summer"}
    assert document.chunk_count == sum(chunk.level == 0 for chunk in chunks)
    assert any(chunk.level == 1 and chunk.parent_id for chunk in chunks)
    vectors = ChunkVector.objects.filter(document=document)
    assert vectors.count() == len(chunks)
    assert {vector.passage_id for vector in vectors} == {chunk.pk for chunk in chunks if chunk.level == 0}
    posting = Posting.objects.get(document_id=document.pk, term="summer")
    assert (posting.knowledge_base_id, posting.weight > 0) == (handbook.pk, True)
    handbook.refresh_from_db()
    assert handbook.embedding_model == "openai_compatible:scripted-embedding"
    assert handbook.dimensions == len(vectors[0].embedding)
    assert document.metadata["title"] == "Guide"


def test_its_embeddings_are_booked_to_who_gave_it(ingest, acme, ann):
    ingest(GUIDE)
    booked = UsageRecord.objects.filter(workspace=acme, user=ann, kind="embedding", outcome="ok")
    assert {row.purpose for row in booked} == {"passage"}
    assert sum(row.tokens_in for row in booked) > 100


def test_the_stored_vectors_are_those_of_the_model(ingest, embedder):
    document = ingest("Only one short passage.")
    (stored,) = ChunkVector.objects.filter(document=document)
    from tests.vendor.server import vector

    expected = vector(embedder.requests[-1].body["input"][0])
    norm = sum(value * value for value in expected) ** 0.5
    assert stored.embedding == pytest.approx([value / norm for value in expected], abs=2e-3)
    assert embedder.requests[-1].body["input"] == ["notes\nOnly one short passage."]


def test_the_same_bytes_are_one_document_and_one_job(add, handbook):
    first, again = add("same", "a.txt"), add("same", "b.txt")
    assert first.pk == again.pk
    assert (Document.objects.count(), OrmQ.objects.count()) == (1, 1)


def test_the_same_bytes_may_be_in_two_bases(add, acme, ann):
    other = services.create_knowledge_base(workspace=acme, name="Other", actor=ann)
    assert add("same").pk != add("same", knowledge_base=other).pk


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (b"", "a.pdf", "empty_file"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 64, "a.txt", "type_mismatch"),
        (b"\x7fELF" + b"\x00" * 64, "a", "unsupported_file_type"),
        (bytes(range(256)) * 4, "random.bin", "unsupported_file_type"),
        (b"x" * 2_000_000, "a.txt", "file_too_large"),
    ],
)
def test_what_cannot_be_taken_in_is_refused_and_leaves_nothing(add, settings, content, name, code):
    settings.MAX_UPLOAD_BYTES = 1 << 20
    with pytest.raises(KnowSphereError) as refused:
        add(content, name)
    assert refused.value.code == code
    assert "%" not in refused.value.message
    assert not Document.objects.exists()
    assert not OrmQ.objects.exists()


def test_a_file_of_white_space_is_empty_not_indexed(ingest):
    document = ingest(" \n\t\n ", "a.md")
    assert (document.status, document.error_code) == (Status.ERROR_PARSING, "empty_file")
    assert "nothing in it" in failure(document.error_code, document.error_details).message


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../x.txt", "x.txt"),
        ("..\\x.txt", "x.txt"),
        ("/etc/x", "x"),
        ("a\x00.txt", "a.txt"),
        ("CON.txt", "CON.txt"),
        (".htaccess", "htaccess"),
        ("\u202etxt.exe", "txt.exe"),
        ("名" * 300 + ".txt", "名" * 250 + "….txt"),
    ],
)
def test_a_name_is_for_display_only(add, name, shown):
    document = add("text", name)
    assert document.name == shown
    assert document.file.name == f"documents/{document.workspace_id}/{document.pk}/original"


def test_nul_and_surrogates_reach_no_row(ingest):
    document = ingest(("知识" * 40 + "before\x00after \u200bhidden").encode() + b" \xed\xa0\x80 end", "a.txt")
    assert document.status == Status.INDEXED
    assert "beforeafter hidden" in Chunk.objects.get(document=document).text


def test_the_old_generation_answers_until_the_new_one_is_whole(ingest, embedder):
    document = ingest(GUIDE)
    before = rows(document)
    old_key = document.markdown_key
    with document.file.storage.open(document.file.name, "wb") as original:
        original.write(b"# New\n\nAll is different now.\n")
    services.reparse_document(document=document, actor=None)
    embedder.script([Reply(status=400, error="no")], to="embeddings")
    embedder.otherwise = lambda request: Reply(status=400, error="no")
    services.ingest_document(document.pk)
    document.refresh_from_db()
    assert (document.status, document.error_code) == (Status.ERROR_INDEXING, "embedding_failed")
    assert (rows(document), document.markdown_key) == (before, old_key)
    assert default_storage.exists(old_key)

    embedder.reset()
    services.retry_document(document=document, actor=None)
    services.ingest_document(document.pk)
    document.refresh_from_db()
    assert (document.status, document.generation, document.error_code) == (Status.INDEXED, 2, "")
    assert [chunk.text for chunk in Chunk.objects.filter(document=document)] == ["# New\n\nAll is different now."]
    assert not default_storage.exists(old_key)


def test_an_indexed_document_can_be_indexed_again(ingest):
    document = ingest(GUIDE)
    before = rows(document)
    index_document(document=document)
    assert (document.status, document.generation, rows(document)) == (Status.INDEXED, 2, before)
    assert set(Chunk.objects.filter(document=document).values_list("generation", flat=True)) == {2}


def test_a_missing_markdown_sends_the_document_back_to_be_read(add, embedder):
    document = add(GUIDE)
    parse_document(document=document)
    default_storage.delete(document.parsed["key"])
    OrmQ.objects.all().delete()
    index_document(document=document)
    assert (document.status, OrmQ.objects.count()) == (Status.UPLOADED, 1)
    assert services.ingest_document(document.pk) == Status.INDEXED


def test_a_missing_original_is_said(add):
    document = add(GUIDE)
    default_storage.delete(document.file.name)
    parse_document(document=document)
    assert (document.status, document.error_code) == (Status.ERROR_PARSING, "original_missing")


def test_a_chunk_that_the_model_refuses_fails_alone(ingest, embedder):
    from tests.vendor.server import vector

    def answer(request):
        texts = request.body["input"]
        if any("POISON" in text for text in texts):
            return Reply(status=400, error="unsupported value: NaN")
        return Reply(vectors=[vector(text) for text in texts])

    embedder.otherwise = answer
    document = ingest("# A\n\nGood text.\n\n# B\n\nPOISON here.\n\n# C\n\nMore good text.\n")
    assert (document.status, document.chunk_count, document.failed_chunks) == (Status.INDEXED, 3, 1)
    assert ChunkVector.objects.filter(document=document).count() == 2


def test_a_later_document_uses_the_bases_own_model(ingest, settings, handbook):
    ingest("first")
    settings.EMBEDDING_MODEL = "another-model"
    document = ingest("second", "b.md")
    handbook.refresh_from_db()
    assert handbook.embedding_model == "openai_compatible:scripted-embedding"
    assert (document.status, document.error_code) == (Status.ERROR_INDEXING, "embedding_failed")
    assert "not configured" in failure(document.error_code, document.error_details).message


def test_a_deleted_document_is_unreachable_at_once_and_erased_later(ingest, ann, embedder):
    document = ingest(GUIDE)
    folder = f"documents/{document.workspace_id}/{document.pk}"
    services.delete_document(document=document, actor=ann)
    assert not Document.objects.visible_to(ann).exists()
    assert not Chunk.objects.visible_to(ann).exists()
    assert erase_deleted() == 0
    services.restore_document(document=document, actor=ann)
    assert Document.objects.visible_to(ann).get() == document
    services.delete_document(document=document, actor=ann)
    Document.objects.update(deleted_at=timezone.now() - timedelta(seconds=11))
    assert erase_deleted() == 1
    assert not Document.objects.exists()
    assert rows(document) == (0, 0, 0)
    assert not default_storage.exists(folder)
    assert services.ingest_document(document.pk) == ""


def test_deleting_a_base_takes_all_it_holds(ingest, ann, handbook):
    document = ingest(GUIDE)
    services.delete_knowledge_base(knowledge_base=handbook, actor=ann)
    assert not Document.objects.visible_to(ann).exists()
    type(handbook).objects.update(deleted_at=timezone.now() - timedelta(seconds=11))
    erase_deleted()
    assert not type(handbook).objects.exists()
    assert rows(document) == (0, 0, 0)


def test_a_file_store_that_does_not_answer_holds_up_no_sweep(ingest, ann, monkeypatch):
    for at in range(2):
        services.delete_document(document=ingest(f"{GUIDE} {at}", f"{at}.md"), actor=ann)
    Document.objects.update(deleted_at=timezone.now() - timedelta(seconds=11))

    def away(*_arguments):
        raise OSError("away")

    with monkeypatch.context() as patched:
        patched.setattr(default_storage, "listdir", away)
        assert services.sweep()["erased"] == 2
    assert not Document.objects.exists()


def test_files_without_a_row_are_swept_and_others_stay(ingest, monkeypatch):
    from apps.knowledge.services import sweeping

    document = ingest(GUIDE)
    folder = f"documents/{document.workspace_id}"
    from django.core.files.base import ContentFile

    orphans = [f"{folder}/{uuid4()}/original", f"{folder}/{document.pk}/left.md"]
    others = f"{folder}/lost+found/x"  # of a program that knows nothing of documents
    for orphan in (*orphans, others):
        default_storage.save(orphan, ContentFile(b"x"))
    assert sweep_files() == 0
    monkeypatch.setattr(sweeping, "ORPHAN_AFTER", timedelta(0))
    assert sweep_files() >= 2
    assert not any(default_storage.exists(orphan) for orphan in orphans)
    assert default_storage.exists(document.markdown_key)
    assert default_storage.exists(document.file.name)
    assert default_storage.exists(others)
