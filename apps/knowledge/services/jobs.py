"""Jobs that go on after the request: scheduled a slice at a time by workers, then waited for.

A slice is one transaction that moves ``position`` on by compare-and-set: of two workers one does it, and
a killed one leaves it as if it had never begun. So a job needs no lease, and is never lost.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django_q.tasks import async_task

from apps.common.errors import InvalidInput, KnowSphereError
from apps.knowledge.errors import BusyDocument, JobActive, NothingChosen, failure
from apps.knowledge.models import Document, Job, KnowledgeBase
from apps.knowledge.querysets import DocumentQuerySet, JobQuerySet
from apps.knowledge.services import batches, moving
from apps.knowledge.services.documents import enqueue_turns
from apps.knowledge.services.work import as_failure, is_outage
from apps.models.errors import ModelError
from apps.workspaces import audit
from apps.workspaces.models import User

logger = logging.getLogger(__name__)

RUN = "apps.knowledge.tasks.advance_jobs"
STOOD_STILL = timedelta(minutes=1)
SLICE = 100
MOST_DOCUMENTS = 50_000
IDLE_S = 120  # an upload that brings nothing more for so long is over
Status = Document.Status
# Which states a kind of job starts from, by the state that it sets. In this order.
STARTS: dict[str, list[tuple[Document.Status, tuple[Document.Status, ...], Q]]] = {
    Job.Kind.PARSE: [(Status.UPLOADED, Document.FINAL, Q())],
    Job.Kind.INDEX: [
        (Status.PARSED, (Status.INDEXED,), Q()),
        (Status.PARSED, (Status.ERROR_INDEXING,), Q()),
    ],
    Job.Kind.RETRY: [
        (Status.PARSED, (Status.ERROR_INDEXING,), ~Q(parsed={}) | ~Q(markdown_key="")),
        (Status.UPLOADED, (Status.ERROR_PARSING, Status.ERROR_INDEXING), Q()),
    ],
}


def start_job(*, knowledge_base: KnowledgeBase, kind: Job.Kind, documents: DocumentQuerySet, actor: User) -> Job:
    """Have documents read again, indexed again or tried again, in the background.

    Raises:
        NothingChosen: there is none. JobActive: the same is under way.
        InvalidInput: more than MOST_DOCUMENTS.
    """
    chosen = batches.alive(knowledge_base).filter(pk__in=documents.order_by().values("pk"))
    ids = [str(pk) for pk in chosen.order_by("created_at", "pk").values_list("pk", flat=True)[: MOST_DOCUMENTS + 1]]
    if not ids:
        raise NothingChosen(field="documents", reason="")
    if len(ids) > MOST_DOCUMENTS:
        raise InvalidInput(field="documents", reason=f"at most {MOST_DOCUMENTS} at a time")
    job = Job(
        workspace_id=knowledge_base.workspace_id,
        knowledge_base=knowledge_base,
        kind=kind,
        scope=f"{kind}:{hashlib.sha256(','.join(sorted(ids)).encode()).hexdigest()}",
        payload={"documents": ids},
        total=len(ids),
        created_by=actor,
    )
    try:
        with transaction.atomic():
            job.save(force_insert=True)
            batches.note(job)
            async_task(RUN)
    except IntegrityError as error:
        raise JobActive from error
    return job


def join_upload(*, knowledge_base: KnowledgeBase, batch: UUID, total: int, actor: User) -> Job | None:
    """Return the job of an upload of several files, begun by whichever file comes first. None if it has ended.

    Raises:
        InvalidInput: the id is another's, or another base's.
    """
    fields = {
        "workspace_id": knowledge_base.workspace_id,
        "kind": Job.Kind.ADD,
        "scope": f"add:{batch}",
        "status": Job.Status.RUNNING,
        "stage": "receiving",
        "total": total,
        "created_by": actor,
    }
    try:
        job, _created = Job.objects.get_or_create(
            pk=batch, knowledge_base=knowledge_base, created_by=actor, defaults=fields
        )
    except IntegrityError as error:
        raise InvalidInput(field="batch", reason="it is taken") from error
    return job if job.active else None


def note_received(job: Job, *, stored: bool) -> None:
    """Count a file of an upload: stored, or refused."""
    outcome = "scheduled" if stored else "refused"
    with transaction.atomic():
        row = Job.objects.select_for_update().get(pk=job.pk)
        row.position = F("position") + 1
        row.result = {**row.result, outcome: row.result.get(outcome, 0) + 1}
        row.save(update_fields=["position", "result", "changed_at"])
    finish_jobs(Job.objects.filter(pk=job.pk))


def advance_jobs() -> int:
    """Schedule a slice of each job that is not through; return how many were moved on. Run at every turn."""
    return _each(Job.objects.exclude(kind__in=(Job.Kind.ADD, Job.Kind.EMBED)).exclude(stage="working"), _advance)


def advance_moves() -> int:
    """Embed for some seconds in each base that moves to another model; return how many were moved on.

    Each move has one task that follows itself, which is why no other turn may call this.
    """
    return _each(Job.objects.filter(kind=Job.Kind.EMBED), moving.advance)


def resume_moves() -> int:
    """Give each move that has stood still for a minute its task again; return how many there were."""
    since = timezone.now() - STOOD_STILL
    still = Job.objects.active().filter(kind=Job.Kind.EMBED, changed_at__lt=since).count()
    if still:
        async_task(moving.TURN)
    return still


def _each(jobs: JobQuerySet, advance: Callable[[Job], bool]) -> int:
    moved = 0
    for job in jobs.active().select_related("knowledge_base").order_by("changed_at")[:5]:
        try:
            moved += advance(job)
        except Exception as error:
            if is_outage(error):  # it passes, and the queue or the sweeper goes on
                raise
            found = as_failure(job, error)  # this job's fault, and no reason to hold up the others
            _end(job, Job.Status.FAILED, error_code=found.code, error_details={**found.details})
    return moved


@transaction.atomic
def _advance(job: Job) -> bool:
    """Schedule the next slice. The compare-and-set comes first: it locks the row until the slice is in."""
    ids = job.payload["documents"][job.position : job.position + SLICE]
    position = job.position + len(ids)
    through = position >= job.total
    won = Job.objects.filter(pk=job.pk, position=job.position, cancel_requested=False).active().exclude(stage="working")
    if not won.update(
        position=position,
        status=Job.Status.RUNNING,
        stage="working" if through else "scheduling",
        changed_at=timezone.now(),
    ):
        return False
    slice_ = Document.objects.filter(pk__in=ids, knowledge_base=job.knowledge_base_id, deleted_at__isnull=True)
    scheduled = _schedule(slice_, job)
    result = {**job.result}
    for outcome, count in (("scheduled", scheduled), ("skipped", len(ids) - scheduled)):
        result[outcome] = result.get(outcome, 0) + count
    Job.objects.filter(pk=job.pk).update(result=result)
    enqueue_turns(job.knowledge_base_id, scheduled)
    if through:
        finish_jobs(Job.objects.filter(pk=job.pk))
    else:
        async_task(RUN)
    return True


def _schedule(documents: DocumentQuerySet, job: Job) -> int:
    fields: dict[str, Any] = {"error_code": "", "error_details": {}, "interruptions": 0, "job": job}
    ids: set[UUID] = set()
    for to, among, condition in STARTS[job.kind]:
        rows = documents.filter(condition, status__in=among).exclude(pk__in=ids)
        found = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
        Document.objects.filter(pk__in=found).update(status=to, changed_at=timezone.now(), **fields)
        ids.update(found)
    return len(ids)


def cancel_job(*, job: Job, actor: User) -> None:
    """Stop a job: what it has not scheduled is left, what it has is stopped as a document is.

    Raises:
        BusyDocument: it has ended already.
    """
    now = timezone.now()
    with transaction.atomic():
        if (
            job.kind == Job.Kind.EMBED
        ):  # what writes vectors, or switches them, holds the base and then looks at the job
            KnowledgeBase.objects.select_for_update(no_key=True).get(pk=job.knowledge_base_id)
        open_ = Job.objects.filter(pk=job.pk).active()
        if not open_.update(
            cancel_requested=True, status=Job.Status.CANCELLED, finished_at=now, changed_at=now, stage=""
        ):
            job.refresh_from_db()
            raise BusyDocument(state=job.get_status_display())
        batches.stop(Document.objects.filter(job=job, deleted_at__isnull=True))
        if job.kind == Job.Kind.EMBED:
            moving.abandon(job.knowledge_base)
        audit.did("job.cancelled", job, who=actor, kind=job.kind)
    job.refresh_from_db()


def retry_job(*, job: Job, actor: User) -> Job:
    """Try the documents of a job that failed again.

    Raises:
        NothingChosen: none of them has failed. JobActive: that is under way.
    """
    failed = Document.objects.filter(job=job, status__in=(Status.ERROR_PARSING, Status.ERROR_INDEXING))
    return start_job(knowledge_base=job.knowledge_base, kind=Job.Kind.RETRY, documents=failed, actor=actor)


def finish_jobs(jobs: JobQuerySet) -> int:
    """End those jobs of which no document is left to work on; return how many.

    An upload ends when all its files have come, or nothing has come for a while.
    """
    unsettled = Document.objects.filter(job=OuterRef("pk"), deleted_at__isnull=True).exclude(status__in=Document.FINAL)
    idle = timezone.now() - timedelta(seconds=IDLE_S)
    received = Q(stage="receiving") & (Q(position__gte=F("total")) | Q(changed_at__lt=idle))
    ended = jobs.active().filter(Q(stage="working") | received).exclude(Exists(unsettled))
    return sum(_end(job, Job.Status.SUCCEEDED) for job in ended)


def _end(job: Job, status: Job.Status, **fields: Any) -> int:
    now = timezone.now()
    fields |= {"status": status, "finished_at": now, "changed_at": now}
    return (
        Job.objects.filter(pk=job.pk)
        .active()
        .update(stage="", progress=documents_by_state([job.pk]).get(job.pk, {}), **fields)
    )


def shares(job: Job, by_state: dict[str, int]) -> dict[str, int]:
    """Return how many of a job's documents are ready, failed, settled, and of how many. ``by_state`` while it runs."""
    states = by_state if job.active else job.progress
    failed = states.get(Status.ERROR_PARSING, 0) + states.get(Status.ERROR_INDEXING, 0)
    ready = states.get(Status.INDEXED, 0)
    if job.stage == "scheduling":  # what was indexed before and waits for its turn is not done
        ready = failed = 0
    refused = job.result.get("refused", 0)
    done = job.result.get("done", 0)
    settled = ready + failed + refused + job.result.get("skipped", 0) + done
    return {"ready": ready + done, "failed": failed + refused, "settled": settled, "total": job.total}


def reason(job: Job) -> KnowSphereError | None:
    """Return why a job failed, as the error that it stands for; None where it did not."""
    if not job.error_code:
        return None
    of_model = next((kind for kind in ModelError.__subclasses__() if kind.code == job.error_code), None)
    return of_model(**job.error_details) if of_model else failure(job.error_code, job.error_details)


def told(job: Job) -> str:
    """Return the sentence that tells a job's maker of its end."""
    counts = shares(job, {})
    found: dict[str, object] = {"base": job.knowledge_base.name, **counts}
    if job.status == Job.Status.FAILED and job.kind == Job.Kind.EMBED:
        why = reason(job)
        return _("“%(base)s” stays with its embedding model. %(reason)s") % {
            **found,
            "reason": why.message if why else "",
        }
    if job.status == Job.Status.FAILED:
        return _("“%(base)s”: the work on many documents failed and has been logged. Try again.") % found
    if job.status == Job.Status.CANCELLED:
        return _("“%(base)s”: stopped on request.") % found
    if job.kind == Job.Kind.EMBED:
        return _("“%(base)s”: search goes by the new embedding model from now on.") % found
    if counts["failed"]:
        return _("“%(base)s”: %(ready)s ready to answer from, %(failed)s need attention.") % found
    return (
        ngettext(
            "“%(base)s”: %(ready)s document is ready to answer from.",
            "“%(base)s”: %(ready)s documents are ready to answer from.",
            counts["ready"],
        )
        % found
    )


def documents_by_state(jobs: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """Return how many documents of each job are in each state now. The truth of a job's progress; one query."""
    rows = Document.objects.filter(job__in=jobs, deleted_at__isnull=True).values_list("job", "status")
    found: dict[UUID, dict[str, int]] = {}
    for job, status, count in rows.annotate(count=Count("pk")).order_by():
        found.setdefault(job, {})[status] = count
    return found
