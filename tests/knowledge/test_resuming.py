"""An attempt that stopped in the middle: what was done is kept, nothing of it is seen, and the truth is told."""

import threading

import pytest

from apps.knowledge import services
from apps.knowledge.models import Chunk, ChunkOverride, ChunkVector, Document, IngestionAttempt, Posting, StagedVector
from apps.knowledge.services import work
from apps.knowledge.services.indexing import BATCH
from apps.knowledge.services.ingestion import index_document, parse_document
from tests.knowledge.test_ingestion import GUIDE, rows
from tests.vendor import Reply
from tests.vendor.server import vector

Status = Document.Status
SECTIONS = 3 * BATCH
LONG = "\n\n".join(f"# {at}\n\nText of section {at}." for at in range(SECTIONS))


def inputs(vendor):
    return [text for request in vendor.requests for text in request.body["input"] if text != "dimension"]


def test_a_retry_goes_on_after_the_last_batch_and_nothing_is_seen_before_the_end(add, embedder):
    def answer(request):
        if len(inputs(embedder)) > 2 * BATCH:
            return Reply(status=401, error="no more today")
        return Reply(vectors=[vector(text) for text in request.body["input"]])

    document = add(LONG)
    embedder.otherwise = answer
    services.ingest_document(document.pk)
    document.refresh_from_db()
    assert (document.status, document.error_code) == (Status.ERROR_INDEXING, "embedding_failed")
    assert rows(document) == (0, 0, 0)
    assert StagedVector.objects.filter(document=document).count() == 2 * BATCH

    embedder.reset()
    services.retry_document(document=document, actor=None)
    services.ingest_document(document.pk)
    document.refresh_from_db()
    assert (document.status, document.failed_chunks, document.error_code) == (Status.INDEXED, 0, "")
    assert len(inputs(embedder)) == SECTIONS - 2 * BATCH
    assert ChunkVector.objects.filter(document=document).count() == SECTIONS
    assert not StagedVector.objects.exists()
    kept = ChunkVector.objects.select_related("chunk").get(document=document, chunk__heading="1")
    expected = vector("notes > 1\n# 1\n\nText of section 1.")
    norm = sum(value * value for value in expected) ** 0.5
    assert kept.embedding == pytest.approx([value / norm for value in expected], abs=2e-3)


def test_an_error_belongs_to_its_attempt(add, embedder):
    document = add(GUIDE)
    embedder.otherwise = lambda request: Reply(status=400, error="no")
    services.ingest_document(document.pk)
    embedder.reset()
    document.refresh_from_db()
    services.retry_document(document=document, actor=None)
    services.ingest_document(document.pk)
    found = list(document.attempts.order_by("number").values_list("step", "outcome", "error_code"))
    assert found == [("parse", "succeeded", ""), ("index", "failed", "embedding_failed"), ("index", "succeeded", "")]
    last = document.attempts.latest("number")
    document.refresh_from_db()
    assert (last.chunk_count, last.failed_chunks) == (document.chunk_count, 0)
    assert all(row.started_at <= row.ended_at for row in document.attempts.all())
    assert document.error_code == ""


def test_a_lost_worker_is_an_attempt_too(add):
    from datetime import timedelta

    document = add(GUIDE)
    for _ in range(3):
        document.refresh_from_db()
        assert document.claim(Status.PARSING, among=[Status.UPLOADED], lease=timedelta(seconds=-1), stage="reading")
        services.sweep()
    outcomes = IngestionAttempt.objects.filter(document=document).values_list("outcome", "error_code")
    assert list(outcomes) == [("lost", "worker_lost")] * 3
    document.refresh_from_db()
    assert (document.status, document.error_code) == (Status.ERROR_PARSING, "worker_lost")


@pytest.mark.django_db(transaction=True)
def test_a_model_that_hangs_does_not_keep_a_stop_waiting(add, embedder, ann, in_thread, monkeypatch):
    monkeypatch.setattr(work, "RENEW_EVERY_S", 0.1)
    monkeypatch.setattr(work, "HEART", work.Heart())
    document, asked, never = add(GUIDE), threading.Event(), threading.Event()

    def answer(request):
        if request.body["input"] == ["dimension"]:
            return Reply()
        asked.set()
        return Reply(hold=never)

    embedder.otherwise = answer
    worker = in_thread(services.ingest_document, document.pk)
    assert asked.wait(60)
    document.refresh_from_db()
    services.cancel_document(document=document, actor=ann)
    worker.join(60)
    never.set()
    document.refresh_from_db()
    assert (document.status, document.error_code) == (Status.ERROR_INDEXING, "cancelled")
    assert document.attempts.latest("number").outcome == "cancelled"


def passages(document):
    return list(Chunk.objects.filter(document=document, level=0).order_by("ordinal"))


def test_what_people_changed_is_kept_when_the_document_is_indexed_again(ingest):
    document = ingest("# A\n\nFirst text.\n\n# B\n\nSecond text.\n\n# C\n\nThird text.\n")
    first, second, _ = passages(document)
    common = {"document": document}
    ChunkOverride.objects.create(**common, content_hash=first.content_hash, original=first.text, disabled=True)
    ChunkOverride.objects.create(
        **common, content_hash=second.content_hash, original=second.text, text="# B\n\nSomething corrected."
    )
    index_document(document=document)
    first, second, third = passages(document)
    assert (first.disabled, first.edited, second.disabled, second.edited) == (True, False, False, True)
    assert (second.text, third.text) == ("# B\n\nSomething corrected.", "# C\n\nThird text.")
    assert not ChunkVector.objects.filter(chunk=first).exists()
    assert not Posting.objects.filter(chunk_id=first.pk).exists()
    assert Posting.objects.filter(chunk_id=second.pk, term="correct").exists()
    assert document.failed_chunks == 0
    assert all(document.overrides.values_list("applied", flat=True))

    services.reparse_document(document=document, actor=None)
    with document.file.storage.open(document.file.name, "wb") as original:
        original.write(b"# A\n\nFirst text.\n\n# B\n\nAll new.\n")
    services.ingest_document(document.pk)
    applied = dict(document.overrides.values_list("original", "applied"))
    assert applied == {"# A\n\nFirst text.": True, "# B\n\nSecond text.": False}
    assert [chunk.disabled for chunk in passages(document)] == [True, False]


def test_a_long_change_is_cut_into_parts_that_are_searched(ingest):
    document = ingest("# A\n\nFirst text.\n")
    (only,) = passages(document)
    longer = "# A\n\n" + " ".join(f"Sentence {at} of the correction says something." for at in range(25))
    ChunkOverride.objects.create(document=document, content_hash=only.content_hash, original=only.text, text=longer)
    index_document(document=document)
    (only,) = passages(document)
    children = Chunk.objects.filter(document=document, level=1, parent=only).order_by("ordinal")
    assert only.text == longer
    assert len(children) > 1
    assert "Sentence 24" in children[len(children) - 1].text
    assert ChunkVector.objects.filter(passage_id=only.pk).count() == 1 + len(children)


def test_a_batch_is_never_half_kept(add, embedder, ann):
    """What is staged for a document that is deleted meanwhile goes with it."""

    document = add(GUIDE)
    parse_document(document=document)
    services.delete_document(document=document, actor=ann)
    import numpy as np

    from apps.knowledge import staging

    staging.stage_vectors(document, [document.pk], np.ones((1, 4), dtype=np.float32), {})
    assert not StagedVector.objects.exists()
