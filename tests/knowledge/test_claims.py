"""Who has a document in work: claims, leases, stops, and what a lost worker leaves."""

import threading
import time
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from apps.knowledge import services
from apps.knowledge.errors import BusyDocument
from apps.knowledge.models import Document
from apps.knowledge.services import work
from apps.knowledge.services.ingestion import index_document, parse_document
from apps.knowledge.services.sweeping import recover_expired, sweep
from apps.knowledge.services.work import REPORT_EVERY_S
from tests.knowledge.test_ingestion import GUIDE, rows
from tests.vendor import Reply

Status = Document.Status


def test_only_one_of_two_gets_a_step(add, embedder):
    document, rival = add(GUIDE), None
    rival = Document.objects.get(pk=document.pk)
    assert document.claim(Status.PARSING, among=[Status.UPLOADED], lease=timedelta(seconds=30))
    with pytest.raises(BusyDocument):
        parse_document(document=rival)
    assert services.ingest_document(document.pk) == Status.PARSING


def test_a_worker_that_lost_its_claim_changes_nothing(add, embedder):
    document = add(GUIDE)
    document.claim(Status.PARSING, among=[Status.UPLOADED], lease=timedelta(seconds=-1))
    late = Document.objects.get(pk=document.pk)
    assert services.ingest_document(document.pk) == Status.INDEXED
    assert late.settle(Status.ERROR_PARSING, "broken_file") is False
    document.refresh_from_db()
    assert (document.status, document.generation) == (Status.INDEXED, 1)


@pytest.mark.parametrize(("busy", "start"), [(Status.PARSING, Status.UPLOADED), (Status.INDEXING, Status.PARSED)])
def test_work_of_a_dead_worker_goes_back_to_the_queue_and_then_aside(add, embedder, busy, start):
    document = add(GUIDE)
    OrmQ.objects.all().delete()
    if busy == Status.INDEXING:
        parse_document(document=document)
    for times in (1, 2, 3):
        assert document.claim(busy, among=[start], lease=timedelta(seconds=-1))
        assert recover_expired(Document.objects.all()) == 1
        assert recover_expired(Document.objects.all()) == 0
        document.refresh_from_db()
        assert document.interruptions == times
        assert OrmQ.objects.count() == min(times, 2)
    assert (document.status, document.error_code) == (Document.FAILED[busy], "worker_lost")
    services.retry_document(document=document, actor=None)
    assert services.ingest_document(document.pk) == Status.INDEXED
    document.refresh_from_db()
    assert (document.interruptions, document.error_code) == (0, "")


def test_a_lease_that_is_still_good_is_left_alone(add):
    document = add(GUIDE)
    document.claim(Status.PARSING, among=[Status.UPLOADED], lease=timedelta(seconds=30))
    assert set(sweep().values()) == {0}


def test_a_task_lost_with_its_worker_is_queued_again_once_nothing_else_waits(add):
    document, other = add(GUIDE), add("other", "other.md")
    later = timezone.now() + timedelta(hours=1)
    OrmQ.objects.filter(pk=OrmQ.objects.earliest("pk").pk).update(lock=later)  # as a worker's that was killed
    Document.objects.filter(pk=document.pk).update(changed_at=timezone.now() - timedelta(minutes=2))
    assert sweep()["requeued"] == 0
    OrmQ.objects.update(lock=later)
    assert sweep()["requeued"] == 1
    assert sweep()["requeued"] == 0
    assert OrmQ.objects.filter(lock__lt=later).count() == 1
    assert other.status == Status.UPLOADED


def test_running_a_task_again_does_not_index_again(ingest):
    document = ingest(GUIDE)
    services.ingest_document(document.pk)
    document.refresh_from_db()
    assert document.generation == 1


def test_a_waiting_document_is_cancelled_at_once_and_can_go_on(add, embedder, ann):
    document = add(GUIDE)
    services.cancel_document(document=document, actor=ann)
    assert (document.status, document.error_code) == (Status.ERROR_PARSING, "cancelled")
    assert services.ingest_document(document.pk) == Status.ERROR_PARSING
    services.retry_document(document=document, actor=ann)
    assert services.ingest_document(document.pk) == Status.INDEXED
    with pytest.raises(BusyDocument):
        services.cancel_document(document=document, actor=ann)


@pytest.mark.django_db(transaction=True)
def test_a_running_document_is_cancelled_at_the_next_check(add, embedder, ann, in_thread):
    document = add("\n\n".join(f"# {at}\n\nText of section {at}." for at in range(70)))
    asked, go_on = threading.Event(), threading.Event()

    def answer(request):
        if len(request.body["input"]) > 1:
            asked.set()
            return Reply(hold=go_on)
        return Reply()

    embedder.otherwise = answer
    worker = in_thread(services.ingest_document, document.pk)
    assert asked.wait(10)
    document.refresh_from_db()
    assert (document.status, document.stage) == (Status.INDEXING, "embedding")
    services.cancel_document(document=document, actor=ann)
    time.sleep(REPORT_EVERY_S)
    go_on.set()
    worker.join(10)
    document.refresh_from_db()
    assert (document.status, document.error_code) == (Status.ERROR_INDEXING, "cancelled")
    assert rows(document) == (0, 0, 0)


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_make_one_generation(add, embedder, in_thread):
    document = add(GUIDE)
    for thread in [in_thread(services.ingest_document, document.pk) for _ in range(4)]:
        thread.join(20)
    document.refresh_from_db()
    assert (document.status, document.generation, document.attempt) == (Status.INDEXED, 1, 2)


@pytest.mark.django_db(transaction=True)
def test_a_slow_model_does_not_cost_the_lease(add, embedder, in_thread, monkeypatch):
    monkeypatch.setattr(work, "RENEW_EVERY_S", 0.05)
    monkeypatch.setattr(work, "HEART", work.Heart())
    document = add(GUIDE)
    parse_document(document=document)
    asked, go_on = threading.Event(), threading.Event()

    def answer(request):
        if len(request.body["input"]) > 1:
            asked.set()
            return Reply(hold=go_on)
        return Reply()

    embedder.otherwise = answer
    worker = in_thread(lambda: index_document(document=document, lease=timedelta(seconds=0.5)))
    assert asked.wait(10)
    time.sleep(0.8)
    assert sweep()["recovered"] == 0
    go_on.set()
    worker.join(20)
    assert (document.status, document.attempt) == (Status.INDEXED, 2)


def test_a_database_that_went_away_is_no_fault_of_the_document(add, embedder, monkeypatch):
    from django.db import OperationalError

    from apps.knowledge.services import ingestion

    document, whole = add(GUIDE), ingestion.extract

    def lost(*args, **kwargs):
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(ingestion, "extract", lost)
    parse_document(document=document)
    document.refresh_from_db()
    assert (document.status, document.error_code) == (Status.PARSING, "")
    Document.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    monkeypatch.setattr(ingestion, "extract", whole)
    assert sweep()["recovered"] == 1
    assert services.ingest_document(document.pk) == Status.INDEXED
