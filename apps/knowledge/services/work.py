"""One step of work on a claimed document: its lease kept alive, its progress shown, its end recorded."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from django.db import DatabaseError, OperationalError, connection
from django.db.models import QuerySet
from django.utils import timezone

from apps.common.errors import KnowSphereError
from apps.knowledge.errors import Cancelled, DatabaseFailed, DocumentFailure, EmbeddingFailed, InternalFailure, NoSpace
from apps.knowledge.models import Document
from apps.models.gateway import ModelError

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
RENEW_EVERY_S = 8.0
REPORT_EVERY_S = 0.4
DISK_FULL = "53100"


class LeaseLost(Exception):
    """Another worker has the document now, or it was deleted: what we did is void."""


class Work:
    """A document that this process has claimed.

    Used as a context: a thread renews the lease until the end, so that a slow model or a long
    COPY does not lose it; when the process dies the thread dies with it.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lost = Event()
        self.cancelled = Event()
        self._done = Event()
        self._reported = 0.0
        self._stage = ""
        self._thread = Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def check(self) -> None:
        """Raise Cancelled or LeaseLost if one of them has been noticed."""
        if self.lost.is_set():
            raise LeaseLost
        if self.cancelled.is_set():
            raise Cancelled

    def report(self, stage: str, share: float = 0.0) -> None:
        """Show how far the work is, and look whether to go on. Written at most every 0.4 s and at each new stage."""
        self.check()
        now = time.monotonic()
        if stage == self._stage and now - self._reported < REPORT_EVERY_S:
            return
        self._stage, self._reported = stage, now
        self._renew(stage=stage, progress=round(min(max(share, 0.0), 1.0), 3))
        self.check()

    def mine(self) -> QuerySet[Document]:
        """Return the document's row, only while the claim holds."""
        document = self.document
        return Document.objects.filter(
            pk=document.pk, attempt=document.attempt, status=document.status, deleted_at__isnull=True
        )

    def _renew(self, **fields: Any) -> None:
        now = timezone.now()
        if not self.mine().update(lease_until=now + LEASE, changed_at=now, **fields):
            self.lost.set()
        elif self.mine().filter(cancel_requested=True).exists():
            self.cancelled.set()

    def _keep(self) -> None:
        try:
            while not self._done.wait(RENEW_EVERY_S):
                try:
                    self._renew()
                except DatabaseError:
                    logger.warning("lease of document %s not renewed", self.document.pk)
        finally:
            connection.close()


def carry_out(document: Document, step: Callable[[Work], None]) -> None:
    """Run one step on a claimed document and record any failure in it. The edge of all work: never raises.

    Where the failure itself cannot be written (the database is gone) the lease runs out, and the
    document goes back to the queue.
    """
    failed = Document.FAILED[Document.Status(document.status)]
    try:
        try:
            with Work(document) as work:
                step(work)
        except LeaseLost:
            logger.warning("document %s: another worker has it now, or it was deleted", document.pk)
        except Exception as error:  # noqa: BLE001
            found = _as_failure(document, error)
            if not document.settle(failed, found.code, {**found.details}):
                logger.warning("document %s: %s, but the claim is no longer ours", document.pk, found.code)
    except DatabaseError:
        logger.exception("document %s: its state could not be written", document.pk)


def _as_failure(document: Document, error: Exception) -> DocumentFailure:
    if isinstance(error, DocumentFailure):
        return error
    if isinstance(error, ModelError):
        return EmbeddingFailed(model=error.details.get("model", ""), reason=error.details.get("reason", ""))
    if isinstance(error, OperationalError) and getattr(error.__cause__, "sqlstate", "") == DISK_FULL:
        return NoSpace()
    logger.error("document %s failed", document.pk, exc_info=error)
    if isinstance(error, KnowSphereError):
        return InternalFailure(reason=error.code)
    return DatabaseFailed() if isinstance(error, DatabaseError) else InternalFailure()
