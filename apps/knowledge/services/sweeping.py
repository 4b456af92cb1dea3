"""What nobody is at any more: work whose worker vanished, rows and files that are to go."""

import logging
import time
from datetime import datetime, timedelta
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django_q.models import OrmQ

from apps.knowledge import storage
from apps.knowledge.models import Document, DocumentImage, Folder, Job, KnowledgeBase
from apps.knowledge.services.documents import UNDO, enqueue
from apps.knowledge.services.fairness import next_waiting
from apps.knowledge.services.jobs import advance_jobs, finish_jobs, resume_moves
from apps.knowledge.services.sources import refresh_due
from apps.workspaces.services import quotas

logger = logging.getLogger(__name__)

MOST_INTERRUPTIONS = 3
EVERY_S = 15.0
WAITED = timedelta(seconds=60)
WAITED_AT_START = timedelta(0)
MOST_REQUEUED = 200  # a sweep; the next one goes on
ORPHAN_AFTER = timedelta(hours=1)


def recover_expired(documents: QuerySet[Document]) -> int:
    """Return documents whose lease has run out to the queue; set those aside that ended too many workers.

    Conditional on the very attempt that expired, so two sweepers count an interruption once.
    """
    now = timezone.now()
    expired = documents.filter(status__in=tuple(Document.BUSY), lease_until__lt=now, deleted_at__isnull=True)
    count = 0
    for document in expired:
        times = document.interruptions + 1
        poisonous = times >= MOST_INTERRUPTIONS
        busy = Document.Status(document.status)
        with transaction.atomic():
            moved = Document.objects.filter(
                pk=document.pk, attempt=document.attempt, status=busy, lease_until__lt=now
            ).update(
                status=Document.FAILED[busy] if poisonous else Document.BUSY[busy],
                error_code="worker_lost" if poisonous else "",
                error_details={"times": times} if poisonous else {},
                interruptions=F("interruptions") + 1,
                lease_until=None,
                stage="",
                progress=0.0,
                changed_at=now,
            )
            if moved:
                document.record_attempt("worker_lost", {"times": times}, outcome="lost")
            if moved and not poisonous:
                enqueue(document)
        count += moved
        if moved:
            logger.warning("document %s: worker lost while %s, time %s", document.pk, busy, times)
    return count


def requeue_waiting(*, waited: timedelta) -> int:
    """Queue again what has waited while the queue was empty: its task is in the hands of a worker that was killed.

    django-q hands such a task out again only after ``retry`` seconds, more than an hour. While other
    tasks wait, nothing is done: a long queue is no sign of a lost task. A task too many is harmless.
    """
    now = timezone.now()
    if OrmQ.objects.filter(lock__lte=now).exists():
        return 0
    waiting = Document.objects.filter(
        status__in=tuple(Document.BUSY.values()), changed_at__lt=now - waited, deleted_at__isnull=True
    )
    count = 0
    for document in waiting[:MOST_REQUEUED]:
        with transaction.atomic():
            same = Document.objects.filter(pk=document.pk, status=document.status, changed_at=document.changed_at)
            if same.update(changed_at=now):
                enqueue(document)
                count += 1
    return count


def pass_on() -> None:
    """Queue a turn where documents wait and none is queued: theirs went with a worker that was killed.

    Asked after each turn that had something to do, so what is left of a killed worker's hands is taken up at
    once, one after the other, and not by the sweep of the next minute.
    """
    if OrmQ.objects.filter(lock__lte=timezone.now()).exists():
        return
    document = next_waiting()
    if document is not None:
        enqueue(document)


def sweep(*, waited: timedelta = WAITED) -> dict[str, int]:
    """Recover, queue again, erase what is deleted for good, end jobs. Run as a worker starts and every minute."""
    advance_jobs()
    resume_moves()
    return {
        "recovered": recover_expired(Document.objects.all()),
        "requeued": requeue_waiting(waited=waited),
        "erased": erase_deleted(),
        "refreshed": refresh_due(),
        "jobs": finish_jobs(Job.objects.all()),
    }


def sweep_if_due() -> None:
    """Sweep between two turns too: the schedule's own task waits at the end of a long queue."""
    global _swept
    now = time.monotonic()
    if now - _swept >= EVERY_S:
        _swept = now
        sweep()


_swept = time.monotonic()  # of this process; a worker sweeps as it starts


def erase_deleted() -> int:
    """Erase documents and bases whose Undo has lapsed: rows first, in one transaction a document, then files."""
    before = timezone.now() - UNDO
    gone = Document.objects.filter(Q(deleted_at__lt=before) | Q(knowledge_base__deleted_at__lt=before))
    count = 0
    for document in gone.iterator(chunk_size=100):
        if _erase_document(gone.filter(pk=document.pk)):
            count += 1
            try:
                erase_files(document)
            except OSError:  # the daily sweep finds them by their row that is gone
                logger.warning("document %s: its files could not be deleted", document.pk)
    _erase_folders(before)
    for knowledge_base in KnowledgeBase.objects.filter(deleted_at__lt=before, documents__isnull=True):
        knowledge_base.delete()
    return count


@transaction.atomic
def _erase_document(gone: QuerySet[Document]) -> bool:
    """Erase a document's rows if it still is to go: Undo may have been faster, or another sweeper."""
    document = gone.select_for_update(of=("self",), skip_locked=True).first()
    if document is None:
        return False
    place, person = document.workspace_id, document.uploaded_by_id
    storage.erase_document(document.pk)
    quotas.give_back(workspace_id=place, user_id=person, storage=document.size_bytes, documents=1)
    return True


@transaction.atomic
def _erase_folders(before: datetime) -> None:
    """Erase folders below which nothing is left: a folder takes all below it along, and opens what lay in it.

    All that may go are locked first and then asked again, so that none comes back in between.
    """
    lapsed = Folder.objects.filter(deleted_at__lt=before)
    locked = list(lapsed.order_by("pk").select_for_update().values_list("pk", flat=True))
    if not locked:
        return
    documents = Document.objects.filter(folder__lineage__contains=[OuterRef("pk")])
    staying = Folder.objects.filter(Q(deleted_at__isnull=True) | Q(deleted_at__gte=before))
    staying = staying.filter(lineage__contains=[OuterRef("pk")])
    lapsed.filter(~Exists(documents), ~Exists(staying), pk__in=locked).delete()


def folder_of(document: Document) -> str:
    """Return the folder that holds all of a document's files."""
    return f"documents/{document.workspace_id}/{document.pk}"


def erase_files(document: Document) -> None:
    """Delete every file of a document, whatever wrote it."""
    _erase_folder(folder_of(document))


def sweep_files() -> int:
    """Delete files that no row knows: left by a rolled back transaction or a killed process. Run once a day."""
    count = 0
    before = timezone.now() - ORPHAN_AFTER
    for workspace in _folders("documents"):
        for name in _folders(f"documents/{workspace}"):
            folder = f"documents/{workspace}/{name}"
            try:
                known = Document.objects.filter(pk=name).values_list("file", "markdown_key", "parsed__key").first()
            except ValidationError:  # it is none of ours
                continue
            pictures = set(DocumentImage.objects.filter(document=UUID(name)).values_list("key", flat=True))
            for file in default_storage.listdir(folder)[1]:
                key = f"{folder}/{file}"
                if key not in (known or ()) and key not in pictures and default_storage.get_modified_time(key) < before:
                    default_storage.delete(key)
                    count += 1
            if known is None and not any(default_storage.listdir(folder)):
                _erase_folder(folder)
    return count


def _folders(path: str) -> list[str]:
    try:
        return default_storage.listdir(path)[0]
    except FileNotFoundError:
        return []


def _erase_folder(folder: str) -> None:
    try:
        files = default_storage.listdir(folder)[1]
    except FileNotFoundError:
        return
    for file in files:
        default_storage.delete(f"{folder}/{file}")
    default_storage.delete(folder)  # an empty folder, where the store has such a thing
