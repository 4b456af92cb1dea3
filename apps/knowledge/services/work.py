"""One step of work on a claimed document: its lease kept alive, its progress shown, its end recorded."""

import logging
import os
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Self

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import Model
from django.utils import timezone

from apps.common.errors import KnowSphereError
from apps.knowledge.errors import Cancelled, DatabaseFailed, DocumentFailure, EmbeddingFailed, InternalFailure, NoSpace
from apps.knowledge.models import Document
from apps.models import ledger
from apps.models.accounting import Caller, charged_to
from apps.models.gateway import ModelError

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
RENEW_EVERY_S = 2.0  # also how soon a stop is noticed by work that reports nothing
REPORT_EVERY_S = 0.4
DISK_FULL = "53100"
PASSING = ("08", "57P", "53300", "40")  # SQLSTATEs, or how they begin


class LeaseLost(Exception):
    """Another worker has the document now, or it was deleted: what we did is void."""


class Work:
    """A document that this process has claimed.

    Used as a context: meanwhile the process's heart renews the lease, so that a slow model or a long
    COPY does not lose it; when the process dies the heart dies with it.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lost = Event()
        self.cancelled = Event()
        self.tokens: dict[int, bytes] = {}  # of passages by their place, where the model gives them; for the reranker
        self.part = (0.0, 1.0)  # where what is reported begins in the whole, and its share of it
        self._written = time.monotonic()  # the claim wrote the first stage
        self._stage = document.stage

    def __enter__(self) -> Self:
        HEART.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        HEART.remove(self)

    def check(self) -> None:
        """Raise Cancelled or LeaseLost if one of them has been noticed."""
        if self.lost.is_set():
            raise LeaseLost
        if self.cancelled.is_set():
            raise Cancelled

    def report(self, stage: str, share: float = 0.0, *, slow: bool = False) -> None:
        """Show how far the work is, and look whether to go on. Written at most every 0.4 s.

        A stage that is known to be ``slow`` is written as it begins.
        """
        self.check()
        now = time.monotonic()
        begins = slow and stage != self._stage
        if not begins and now - self._written < REPORT_EVERY_S:
            return
        self._stage = self.document.stage = stage
        self._written = now
        self.renew(stage=stage, progress=round(self.part[0] + self.part[1] * min(max(share, 0.0), 1.0), 3))
        self.check()

    def renew(self, **fields: Any) -> None:
        """Extend the lease; notice that it is lost, or that somebody wants the work stopped."""
        now = timezone.now()
        mine = self.document.mine()
        if mine.filter(cancel_requested=False).update(lease_until=now + LEASE, changed_at=now, **fields):
            return
        if mine.exists():
            self.cancelled.set()
        else:
            self.lost.set()


class Heart:
    """One thread of this process that renews the leases of what it is at; started with the first work."""

    def __init__(self) -> None:
        self._works: set[Work] = set()
        self._lock = Lock()
        self._owner = 0

    def add(self, work: Work) -> None:
        """Renew this work's lease from now on."""
        with self._lock:
            if self._owner != os.getpid():  # a fork inherits the object, not the thread
                self._works = set()
                self._owner = os.getpid()
                Thread(target=self._beat, name="leases", daemon=True).start()
            self._works.add(work)

    def remove(self, work: Work) -> None:
        """Leave this work alone from now on."""
        with self._lock:
            self._works.discard(work)

    def _beat(self) -> None:
        while True:
            time.sleep(RENEW_EVERY_S)
            with self._lock:
                works = list(self._works)
            try:
                for work in works:
                    work.renew()
            except DatabaseError:
                logger.warning("leases not renewed: the database does not answer")
            finally:
                connection.close()


HEART = Heart()


def carry_out(document: Document, step: Callable[[Work], None]) -> None:
    """Run one step on a claimed document and record any failure in it. The edge of all work: never raises.

    Where the database was lost, or the failure itself cannot be written, the lease runs out and the document
    goes back to the queue.
    """
    failed = Document.FAILED[Document.Status(document.status)]
    try:
        try:
            with Work(document) as work, charged_to(Caller(document.workspace_id, document.uploaded_by_id)):
                step(work)
        except LeaseLost:
            logger.warning("document %s: another worker has it now, or it was deleted", document.pk)
        except Exception as error:  # noqa: BLE001
            _settle_failure(document, failed, error)
    except DatabaseError:
        logger.exception("document %s: its state could not be written", document.pk)
    ledger.flush()


def _settle_failure(document: Document, failed: Document.Status, error: Exception) -> None:
    if is_outage(error):  # the document has no part in it, and is taken up again when the lease has run out
        logger.warning("document %s: the database went away", document.pk)
        return
    found = as_failure(document, error)
    if document.status not in Document.FAILED:  # the step itself was settled: what it made stands
        return
    if not document.settle(failed, found.code, {**found.details}):
        logger.warning("document %s: %s, but the claim is no longer ours", document.pk, found.code)


def is_outage(error: Exception) -> bool:
    """Whether the database passes by: lost, going down or coming up, full of connections, or in another's way."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None) or ""
    return not state or state.startswith(PASSING)


def as_failure(row: Model, error: Exception) -> DocumentFailure:
    """Return what people are told of a failure of the work on a row; one that nobody foresaw goes to the log."""
    if isinstance(error, DocumentFailure):
        return error
    if isinstance(error, ModelError):
        return EmbeddingFailed(model=error.details.get("model", ""), reason=error.details.get("reason", ""))
    if isinstance(error, OperationalError) and getattr(error.__cause__, "sqlstate", "") == DISK_FULL:
        return NoSpace()
    logger.error("%s failed", row, exc_info=error)
    if isinstance(error, KnowSphereError):
        return InternalFailure(reason=error.code)
    return DatabaseFailed() if isinstance(error, DatabaseError) else InternalFailure()
