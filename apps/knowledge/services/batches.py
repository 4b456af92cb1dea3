"""Acts on many documents that are done at once: deleted, moved, tagged, stopped. One statement, whatever the number.

Each leaves a job, so that the list of jobs tells what happened, and Undo has what to bring back.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from apps.common.text import display_name
from apps.knowledge.errors import BusyDocument, FolderRefused, NothingChosen
from apps.knowledge.models import Document, Folder, Job, KnowledgeBase
from apps.knowledge.querysets import DocumentQuerySet
from apps.knowledge.services.documents import enqueue_turns, restore_folders
from apps.workspaces import audit
from apps.workspaces.models import User

Status = Document.Status
MOST_TAGS, LONGEST_TAG = 30, 50
ACTS = {  # as the log names them
    Job.Kind.DELETE: "deleted",
    Job.Kind.MOVE: "moved",
    Job.Kind.TAG: "tagged",
    Job.Kind.CANCEL: "cancelled",
    Job.Kind.PARSE: "read_again",
    Job.Kind.INDEX: "indexed_again",
    Job.Kind.RETRY: "tried_again",
}


def alive(knowledge_base: KnowledgeBase) -> DocumentQuerySet:
    """Return the base's documents that are not deleted."""
    return Document.objects.filter(knowledge_base=knowledge_base, deleted_at__isnull=True)


@transaction.atomic
def delete_documents(
    *, knowledge_base: KnowledgeBase, documents: DocumentQuerySet, actor: User, folders: Collection[UUID] = ()
) -> Job:
    """Hide documents from every door at once; the sweeper erases them when Undo has lapsed.

    Raises:
        NothingChosen: there is none, and no folder either.
    """
    job = _done(knowledge_base, Job.Kind.DELETE, actor, folders=[str(pk) for pk in folders])
    now = timezone.now()
    count = _chosen(knowledge_base, documents).update(deleted_at=now, cancel_requested=True, changed_at=now, job=job)
    return _counted(job, count, required=not folders)


@transaction.atomic
def restore_deleted(*, job: Job, actor: User) -> int:
    """Bring back what a job deleted and nobody has erased yet; return how many documents.

    Raises:
        BusyDocument: all of it is erased, or the same content or folder has been added since.
    """
    gone = Document.objects.select_for_update().filter(job=job, deleted_at__isnull=False)
    lay_in = Document.objects.filter(job=job, deleted_at__isnull=False).values("folder")
    own = Q(pk__in=job.payload.get("folders", []), deleted_at__isnull=False)
    try:
        with transaction.atomic():
            unsettled = gone.exclude(status__in=Document.FINAL).count()
            there = restore_folders(Folder.objects.filter(own | Q(pk__in=lay_in)))
            count = gone.update(deleted_at=None, cancel_requested=False, changed_at=timezone.now(), job=None)
    except IntegrityError as error:
        raise BusyDocument(state="") from error
    if not count and not there:
        raise BusyDocument(state="")
    audit.did("documents.restored", job.knowledge_base, who=actor, job=str(job.pk), count=count)
    enqueue_turns(job.knowledge_base_id, unsettled)
    return count


@transaction.atomic
def move_documents(
    *, knowledge_base: KnowledgeBase, documents: DocumentQuerySet, folder: Folder | None, actor: User
) -> Job:
    """Put documents into a folder of their base, None for the top.

    Raises:
        NothingChosen: there is none. FolderRefused: the folder is in another base.
    """
    if folder and folder.knowledge_base_id != knowledge_base.pk:
        raise FolderRefused(deepest=Folder.DEEPEST, field="folder", reason="")
    job = _done(knowledge_base, Job.Kind.MOVE, actor, folder=str(folder.pk) if folder else None)
    return _counted(job, _chosen(knowledge_base, documents).update(folder=folder))


@transaction.atomic
def tag_documents(
    *,
    knowledge_base: KnowledgeBase,
    documents: DocumentQuerySet,
    actor: User,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> Job:
    """Give tags to documents and take tags away.

    Raises:
        NothingChosen: there is none.
    """
    added, removed = tags_of(add), set(tags_of(remove))
    job = _done(knowledge_base, Job.Kind.TAG, actor, add=added, remove=sorted(removed))
    rows = list(_chosen(knowledge_base, documents).select_for_update().only("pk", "tags").order_by("pk"))
    for row in rows:
        kept = [tag for tag in row.tags if tag not in removed and tag not in added]
        row.tags = [*kept, *added][:MOST_TAGS]
    Document.objects.bulk_update(rows, ["tags"], batch_size=500)
    return _counted(job, len(rows))


@transaction.atomic
def cancel_documents(*, knowledge_base: KnowledgeBase, documents: DocumentQuerySet, actor: User) -> Job:
    """Stop the work on documents: at once where one only waits, else at its worker's next look.

    Raises:
        NothingChosen: there is none.
    """
    job = _done(knowledge_base, Job.Kind.CANCEL, actor)
    chosen = _chosen(knowledge_base, documents)
    if not chosen.exists():
        raise NothingChosen(field="documents", reason="")
    return _counted(job, stop(chosen), required=False)


def stop(documents: DocumentQuerySet) -> int:
    """Stop the work on documents; return how many there was something to stop of."""
    stopped: dict[str, Any] = {"error_code": "cancelled", "error_details": {}, "changed_at": timezone.now()}
    waiting = documents.filter(status=Status.UPLOADED).update(status=Status.ERROR_PARSING, **stopped)
    waiting += documents.filter(status=Status.PARSED).update(status=Status.ERROR_INDEXING, **stopped)
    busy = documents.filter(status__in=tuple(Document.BUSY), cancel_requested=False)
    return waiting + busy.update(cancel_requested=True, changed_at=stopped["changed_at"])


def tags_of(words: Sequence[str]) -> list[str]:
    """Return tags as they are stored: trimmed, one line, each once, at most MOST_TAGS."""
    found = [display_name(word, limit=LONGEST_TAG) for word in words if word.strip()]
    return list(dict.fromkeys(found))[:MOST_TAGS]


def _chosen(knowledge_base: KnowledgeBase, documents: DocumentQuerySet) -> DocumentQuerySet:
    """Return the chosen ones that are in the base; any order or join of the choice stays in a subquery."""
    return alive(knowledge_base).filter(pk__in=documents.order_by().values("pk"))


def _done(knowledge_base: KnowledgeBase, kind: Job.Kind, actor: User, **payload: Any) -> Job:
    now = timezone.now()
    job = Job(
        workspace_id=knowledge_base.workspace_id,
        knowledge_base=knowledge_base,
        kind=kind,
        payload=payload,
        status=Job.Status.SUCCEEDED,
        created_by=actor,
        finished_at=now,
        seen_at=now,  # the page that did it says so itself
    )
    job.scope = f"{kind}:{job.pk}"
    job.save(force_insert=True)
    return job


def note(job: Job) -> None:
    """Write an act on many documents into the log: one entry, with the base and how many."""
    if job.created_by is not None:
        action = f"documents.{ACTS[Job.Kind(job.kind)]}"
        audit.did(action, job.knowledge_base, who=job.created_by, job=str(job.pk), count=job.total)


def _counted(job: Job, count: int, *, required: bool = True) -> Job:
    if required and not count:
        raise NothingChosen(field="documents", reason="")
    job.position = job.total = count
    job.result = {"done": count}
    job.save(update_fields=["position", "total", "result"])
    note(job)
    return job
