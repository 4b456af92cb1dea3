"""Acts on many documents: done or scheduled, cancelled, tried again, resumed after a crash, never twice at once."""

import threading

import pytest
from django.db import transaction

from apps.common.errors import InvalidInput, KnowSphereError
from apps.knowledge import services
from apps.knowledge.errors import BusyDocument, JobActive, NothingChosen
from apps.knowledge.models import Document, Job
from apps.knowledge.services import jobs
from apps.knowledge.tasks import ingest_document
from tests.vendor import Reply

Status, Kind = Document.Status, Job.Kind


@pytest.fixture
def several(ingest):
    """Four documents that are indexed."""
    return [ingest(f"# Note {at}\n\nThe text of note {at}.", f"{at}.md") for at in range(4)]


def chosen(documents):
    return Document.objects.filter(pk__in=[document.pk for document in documents])


def work_off():
    while ingest_document("") != "nothing waits":
        pass


def test_a_job_schedules_in_slices_works_and_tells_how_it_went(several, handbook, ann, monkeypatch):
    monkeypatch.setattr(jobs, "SLICE", 3)
    Document.objects.filter(pk=several[3].pk).update(status=Status.UPLOADED)
    job = services.start_job(knowledge_base=handbook, kind=Kind.INDEX, documents=chosen(several), actor=ann)
    assert (job.status, job.total, job.scope[:6]) == (Job.Status.QUEUED, 4, "index:")
    assert services.advance_jobs() == 1
    job.refresh_from_db()
    assert (job.status, job.stage, job.position) == (Job.Status.RUNNING, "scheduling", 3)
    work_off()
    job.refresh_from_db()
    assert (job.status, job.position, job.result) == (Job.Status.SUCCEEDED, 4, {"scheduled": 3, "skipped": 1})
    assert job.progress == {"indexed": 3}
    assert set(Document.objects.values_list("generation", flat=True)) == {2}  # the fourth by its own turn


def test_the_same_scope_is_not_active_twice(several, handbook, ann):
    services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)
    with pytest.raises(JobActive):
        services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)
    services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several[:2]), actor=ann)
    work_off()
    services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)


def test_nothing_chosen_is_said(handbook, ann, several, mal):
    other = services.create_knowledge_base(workspace=mal.workspaces.get(), name="Theirs", actor=mal)
    for act in (services.delete_documents, services.cancel_documents, services.tag_documents):
        with pytest.raises(NothingChosen):
            act(knowledge_base=other, documents=chosen(several), actor=mal)
    with pytest.raises(NothingChosen):
        services.start_job(knowledge_base=other, kind=Kind.PARSE, documents=chosen(several), actor=mal)
    assert Document.objects.filter(deleted_at=None).count() == 4


def test_a_slice_is_done_whole_or_not_at_all(several, handbook, ann, monkeypatch):
    """A worker killed in the middle of a slice leaves the job as it was, and another goes on."""
    job = services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)

    def killed(*args):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "enqueue_turns", killed)
        with pytest.raises(SystemExit), transaction.atomic():
            services.advance_jobs()
    job.refresh_from_db()
    assert (job.status, job.position) == (Job.Status.QUEUED, 0)
    assert set(Document.objects.values_list("status", flat=True)) == {Status.INDEXED}
    work_off()
    job.refresh_from_db()
    assert (job.status, job.result) == (Job.Status.SUCCEEDED, {"scheduled": 4, "skipped": 0})


@pytest.mark.django_db(transaction=True)
def test_two_workers_schedule_each_slice_once(several, handbook, ann, in_thread):
    job = services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)
    moved = []
    barrier = threading.Barrier(3)

    def advance():
        barrier.wait(60)
        moved.append(services.advance_jobs())

    for thread in [in_thread(advance) for _ in range(3)]:
        thread.join(60)
    job.refresh_from_db()
    assert sum(moved) == 1
    assert job.result == {"scheduled": 4, "skipped": 0}


def test_a_cancelled_job_stops_what_it_scheduled_and_schedules_no_more(several, handbook, ann, monkeypatch):
    monkeypatch.setattr(jobs, "SLICE", 2)
    job = services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)
    services.advance_jobs()
    services.cancel_job(job=job, actor=ann)
    assert (job.status, job.position) == (Job.Status.CANCELLED, 2)
    assert services.advance_jobs() == 0
    states = sorted(Document.objects.values_list("status", "error_code"))
    assert states == [(Status.ERROR_PARSING, "cancelled")] * 2 + [(Status.INDEXED, "")] * 2
    with pytest.raises(BusyDocument):
        services.cancel_job(job=job, actor=ann)


def test_what_failed_in_a_job_is_tried_again(several, handbook, ann, embedder):
    embedder.otherwise = lambda request: Reply(status=400, error="no")
    Document.objects.update(metadata={})  # else the vectors that are there would do
    job = services.start_job(knowledge_base=handbook, kind=Kind.INDEX, documents=chosen(several), actor=ann)
    work_off()
    job.refresh_from_db()
    assert (job.status, job.progress) == (Job.Status.SUCCEEDED, {"error_indexing": 4})
    embedder.reset()
    again = services.retry_job(job=job, actor=ann)
    work_off()
    again.refresh_from_db()
    assert (again.status, again.progress) == (Job.Status.SUCCEEDED, {"indexed": 4})
    with pytest.raises(NothingChosen):
        services.retry_job(job=again, actor=ann)


def test_a_jobs_own_fault_ends_it_and_holds_up_no_other(several, handbook, ann):
    broken = services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)
    Job.objects.filter(pk=broken.pk).update(payload={})
    whole = services.start_job(knowledge_base=handbook, kind=Kind.INDEX, documents=chosen(several), actor=ann)
    work_off()
    broken.refresh_from_db()
    whole.refresh_from_db()
    assert (broken.status, broken.error_code) == (Job.Status.FAILED, "internal_error")
    assert whole.status == Job.Status.SUCCEEDED


def test_an_upload_of_several_ends_when_all_are_there_and_settled(handbook, ann, bea, add, embedder):
    from uuid import uuid4

    from django.core.files.base import ContentFile

    batch = uuid4()
    for at in range(2):
        job = services.join_upload(knowledge_base=handbook, batch=batch, total=3, actor=ann)
        services.add_document(
            knowledge_base=handbook, file=ContentFile(b"text %d" % at), name=f"{at}.txt", actor=ann, job=job
        )
        services.note_received(job, stored=True)
    work_off()
    job.refresh_from_db()
    assert (job.status, job.position) == (Job.Status.RUNNING, 2)
    services.note_received(job, stored=False)
    job.refresh_from_db()
    assert (job.status, job.result) == (Job.Status.SUCCEEDED, {"scheduled": 2, "refused": 1})
    assert job.progress == {"indexed": 2}
    assert services.join_upload(knowledge_base=handbook, batch=batch, total=3, actor=ann) is None
    with pytest.raises(InvalidInput):
        services.join_upload(knowledge_base=handbook, batch=batch, total=3, actor=bea)


def test_many_are_deleted_in_one_statement_and_come_back_by_undo(several, handbook, ann, django_assert_max_num_queries):
    with django_assert_max_num_queries(7):
        job = services.delete_documents(knowledge_base=handbook, documents=chosen(several), actor=ann)
    assert not Document.objects.visible_to(ann).exists()
    assert services.restore_deleted(job=job, actor=ann) == 4
    assert Document.objects.visible_to(ann).count() == 4
    with pytest.raises(BusyDocument):
        services.restore_deleted(job=job, actor=ann)


def test_tags_are_trimmed_and_each_once(several, handbook, ann):
    services.tag_documents(
        knowledge_base=handbook, documents=chosen(several), actor=ann, add=[" Vertrag ", "合同", "合同", ""]
    )
    services.tag_documents(knowledge_base=handbook, documents=chosen(several[:1]), actor=ann, remove=["合同"])
    assert Document.objects.tagged(["Vertrag"]).count() == 4
    assert Document.objects.tagged(["Vertrag", "合同"]).count() == 3


def test_waiting_ones_stop_at_once_and_busy_ones_are_asked(add, several, handbook, ann):
    waiting, busy = add("waiting", "w.txt"), add("busy", "b.txt")
    assert busy.claim(Status.PARSING, among=[Status.UPLOADED], lease=services.work.LEASE)
    job = services.cancel_documents(knowledge_base=handbook, documents=Document.objects.all(), actor=ann)
    waiting.refresh_from_db()
    busy.refresh_from_db()
    assert (waiting.status, waiting.error_code, busy.cancel_requested) == (Status.ERROR_PARSING, "cancelled", True)
    assert job.result == {"done": 2}


def test_a_job_is_seen_and_steered_through_its_base(several, handbook, ann, bea, mal):
    job = services.start_job(knowledge_base=handbook, kind=Kind.PARSE, documents=chosen(several), actor=ann)
    assert not Job.objects.visible_to(bea).exists()  # it tells names of documents
    assert not Job.objects.editable_by(bea).exists()
    assert Job.objects.visible_to(ann).get() == job
    assert not Job.objects.visible_to(mal).exists()
    assert Job.objects.editable_by(ann).get() == job


def test_the_sentences_of_the_refusals_are_whole():
    for error in (JobActive(), NothingChosen(field="documents", reason="")):
        assert isinstance(error, KnowSphereError)
        assert "%" not in error.message
