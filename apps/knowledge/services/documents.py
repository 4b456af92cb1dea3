"""Documents: tried again, cancelled, deleted. The work itself is in ``ingestion``."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django_q.tasks import async_task

from apps.knowledge.errors import BusyDocument, NoSpace, StorageFailed
from apps.knowledge.models import Document, Folder
from apps.workspaces import audit
from apps.workspaces.models import User

logger = logging.getLogger(__name__)

UNDO = timedelta(seconds=10)
INGEST = "apps.knowledge.tasks.ingest_document"
Status = Document.Status


def reparse_document(*, document: Document, actor: User) -> None:
    """Read a settled document again from its original; its old chunks answer until the new ones are in.

    Raises:
        BusyDocument: it is queued or being worked on.
    """
    _restart(document, "document.read_again", actor, to=Status.UPLOADED, among=Document.FINAL)


def retry_document(*, document: Document, actor: User) -> None:
    """Try a failed document again, from the step that failed.

    Raises:
        BusyDocument: it has not failed.
    """
    if document.status == Status.ERROR_INDEXING and (document.parsed or document.markdown_key):
        _restart(document, "document.tried_again", actor, to=Status.PARSED, among=[Status.ERROR_INDEXING])
    else:
        failed = [Status.ERROR_PARSING, Status.ERROR_INDEXING]
        _restart(document, "document.tried_again", actor, to=Status.UPLOADED, among=failed)


@transaction.atomic
def _restart(
    document: Document,
    action: str,
    actor: User,
    *,
    to: Document.Status,
    among: tuple[Document.Status, ...] | list[Document.Status],
) -> None:
    moved = Document.objects.filter(pk=document.pk, status__in=among, deleted_at__isnull=True).update(
        status=to, error_code="", error_details={}, interruptions=0, changed_at=timezone.now()
    )
    document.refresh_from_db()
    if not moved:
        raise BusyDocument(state=document.get_status_display())
    audit.did(action, document, who=actor)
    enqueue(document)


def reindex_document(*, document: Document, actor: User) -> None:
    """Queue a document to be cut and embedded again, from the Markdown it has; its old chunks answer meanwhile.

    Raises:
        BusyDocument: it is not in a state that indexing may start from.
    """
    among = [Status.INDEXED, Status.ERROR_INDEXING]
    _restart(document, "document.indexed_again", actor, to=Status.PARSED, among=among)


@transaction.atomic
def cancel_document(*, document: Document, actor: User) -> None:
    """Stop the work on a document: at once where it only waits, else at the worker's next check.

    Raises:
        BusyDocument: there is nothing to stop.
    """
    alive = Document.objects.filter(pk=document.pk, deleted_at__isnull=True)
    now = timezone.now()
    stopped = {"error_code": "cancelled", "error_details": {}, "changed_at": now}
    moved = (
        alive.filter(status=Status.UPLOADED).update(status=Status.ERROR_PARSING, **stopped)
        or alive.filter(status=Status.PARSED).update(status=Status.ERROR_INDEXING, **stopped)
        or alive.filter(status__in=tuple(Document.BUSY)).update(cancel_requested=True, changed_at=now)
    )
    document.refresh_from_db()
    if not moved:
        raise BusyDocument(state=document.get_status_display())
    audit.did("document.cancelled", document, who=actor)


@transaction.atomic
def delete_document(*, document: Document, actor: User) -> None:
    """Hide a document from every door at once; the sweeper erases it when Undo has lapsed."""
    now = timezone.now()
    hidden = Document.objects.filter(pk=document.pk, deleted_at__isnull=True)
    if hidden.update(deleted_at=now, cancel_requested=True, changed_at=now):
        audit.did("document.deleted", document, who=actor)


def restore_document(*, document: Document, actor: User) -> None:
    """Undo a deletion that has not been carried out yet; the folders above come back with it.

    Raises:
        BusyDocument: it is erased already, or the same file or folder has been added since.
    """
    try:
        with transaction.atomic():
            back = Document.objects.filter(pk=document.pk, deleted_at__isnull=False)
            if not back.update(deleted_at=None, cancel_requested=False, changed_at=timezone.now()):
                raise BusyDocument(state="")
            document.refresh_from_db()
            restore_folders(Folder.objects.filter(documents=document))
            if document.status not in Document.FINAL:
                enqueue(document)
    except IntegrityError as error:
        raise BusyDocument(state=document.get_status_display()) from error


def restore_folders(folders: QuerySet[Folder]) -> int:
    """Bring back deleted folders with those above them; return how many. In a transaction of the caller's."""
    ids = {pk for lineage in folders.values_list("lineage", flat=True) for pk in lineage}
    return Folder.objects.filter(pk__in=ids, deleted_at__isnull=False).update(deleted_at=None)


def enqueue(document: Document) -> None:
    """Queue one more turn, for this document or whichever is next then. A turn too many is harmless."""
    async_task(INGEST, str(document.pk), group=str(document.knowledge_base_id))


def enqueue_turns(knowledge_base_id: UUID, count: int) -> None:
    """Queue that many turns."""
    for _ in range(count):
        async_task(INGEST, "", group=str(knowledge_base_id))


@contextmanager
def storing() -> Iterator[None]:
    """Translate failures of the file store; a missing file stays FileNotFoundError.

    Raises:
        NoSpace: the disk is full.
        StorageFailed: anything else.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace from error
        logger.exception("the file store failed")
        raise StorageFailed from error


def discard(key: str) -> None:
    """Delete a stored file that nothing refers to any more. What can't be deleted now the daily sweep finds."""
    try:
        default_storage.delete(key)
    except OSError:
        logger.warning("a file could not be deleted: %s", key)
