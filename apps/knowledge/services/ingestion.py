"""From a stored file to rows that search finds: read, cut, embed, commit.

Each step is claimed, leased and idempotent; see docs in the app's README for the states.
"""

import hashlib
import logging
import shutil
import uuid
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from datetime import timedelta
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db import transaction

from apps.common.text import display_name
from apps.knowledge import questions
from apps.knowledge.chunkers.windows import Window, in_windows
from apps.knowledge.errors import BusyDocument, DocumentFailure, EmbeddingSwitched, NoRoom, OriginalMissing
from apps.knowledge.extraction import extract
from apps.knowledge.models import Document, Job
from apps.knowledge.parsers.parsed import Parsed
from apps.knowledge.services import overrides, pictures, sources
from apps.knowledge.services.documents import discard, enqueue, storing
from apps.knowledge.services.fairness import next_waiting
from apps.knowledge.services.intake import count_storage
from apps.knowledge.services.jobs import finish_jobs
from apps.knowledge.services.sweeping import recover_expired
from apps.knowledge.services.work import LEASE, LeaseLost, Work, carry_out
from apps.workspaces.errors import QuotaExceeded

if TYPE_CHECKING:
    from apps.knowledge.services.indexing import Embed

logger = logging.getLogger(__name__)

Status = Document.Status
MOST_STEPS = 50  # of one turn
NOTHING_WAITS = "nothing waits"  # what came of a turn
HELD_BYTES = 4 << 20  # of a text that is cut as it is; a longer one is read a window at a time


def ingest_document(document_id: UUID) -> str:
    """Take a document through the steps that are left; return its status, "" if it is gone.

    Called by the worker's task and by the command, as often as anybody likes: whoever claims a step
    does it, and a document that is done or in other hands is left alone.
    """
    document = Document.objects.filter(pk=document_id, deleted_at__isnull=True).first()
    if document is None:
        return ""
    if document.lease_until and recover_expired(Document.objects.filter(pk=document_id)):
        document.refresh_from_db()
    try:
        if document.status == Status.UPLOADED:
            parse_document(document=document, among=[Status.UPLOADED])
        if document.status == Status.PARSED:
            index_document(document=document, among=[Status.PARSED])
    except BusyDocument:
        document.refresh_from_db()
    return document.status


def take_turn() -> str:
    """Take documents that wait through one step each, fairly, until one is settled; return what became of it.

    A row of the queue is a turn. As many turns as documents are queued, so each turn settles one, and
    between two steps another workspace's document may come first.
    """
    for _ in range(MOST_STEPS):
        document = next_waiting()
        if document is None:
            return NOTHING_WAITS
        try:
            if document.status == Status.UPLOADED:
                parse_document(document=document, among=[Status.UPLOADED])
            else:
                index_document(document=document, among=[Status.PARSED])
        except BusyDocument:  # another worker was faster, so it does not wait any more
            continue
        if document.status in Document.FINAL:
            if document.job_id:
                finish_jobs(Job.objects.filter(pk=document.job_id))
            return f"{document.pk} {document.status}"
    return "more than a turn"


def parse_document(
    *,
    document: Document,
    among: Collection[Document.Status] = Document.PARSE_FROM,
    lease: timedelta = LEASE,
    password: str = "",
) -> None:
    """Read the original and store its Markdown; ends ``parsed`` or ``error_parsing``.

    ``password`` opens a locked file; without it the one that was kept does.

    Raises:
        BusyDocument: somebody else has it, or its state does not allow it.
    """
    _claim(document, Status.PARSING, among, lease, "reading")
    carry_out(document, lambda work: _parse(work, password))


def index_document(
    *,
    document: Document,
    among: Collection[Document.Status] = Document.INDEX_FROM,
    lease: timedelta = LEASE,
    embed: "Embed | None" = None,
) -> None:
    """Cut, embed and store the Markdown as the next generation; ends ``indexed`` or ``error_indexing``.

    Where the Markdown is missing the document goes back to ``uploaded`` and into the queue. ``embed``
    may be given where vectors are at hand already.

    Raises:
        BusyDocument: somebody else has it, or its state does not allow it.
    """
    _claim(document, Status.INDEXING, among, lease, "cutting")
    carry_out(document, lambda work: _index(work, embed))


def _claim(
    document: Document, busy: Document.Status, among: Collection[Document.Status], lease: timedelta, stage: str
) -> None:
    if document.claim(busy, among=among, lease=lease, stage=stage):
        return
    document.refresh_from_db()  # it may only have been read too early
    if not document.claim(busy, among=among, lease=lease, stage=stage):
        raise BusyDocument(state=document.get_status_display())


def _parse(work: Work, password: str) -> None:
    document = work.document
    page = {}
    if document.kind == Document.Kind.WEB and not document.fetched_at:
        work.report("fetching", slow=True)
        page = sources.fetched(document, work.check)
        replaced, document.file.name = document.file.name or "", page["file"]
        document.content_type = page["content_type"]
    try:
        parsed = _read(work, password)
        abandoned = str(document.parsed.get("key", ""))
        _keep(work, parsed, page)
    except BaseException:
        if page:
            discard(page["file"])
        raise
    if page and replaced:
        discard(replaced)
    if abandoned and abandoned != document.markdown_key:
        discard(abandoned)


def _read(work: Work, password: str) -> Parsed:
    document = work.document
    password = password or (document.password.reveal() if document.password else "")

    def progress(stage: str, share: float) -> None:
        work.report(stage, share, slow=True)

    if not document.file:
        raise OriginalMissing
    try:
        with storing(), document.file.open("rb") as original:
            if document.kind == Document.Kind.QA:
                return Parsed(questions.markdown(questions.read(original.read())))
            return extract(
                original,
                document.content_type,
                workspace_id=document.workspace_id,
                password=password,
                check=work.check,
                progress=progress,
            )
    except FileNotFoundError as error:
        raise OriginalMissing from error


def _keep(work: Work, parsed: Parsed, page: dict[str, Any]) -> None:
    """Store the Markdown and settle the step; a page whose text is the one that answers already is done."""
    document = work.document
    content = File(parsed.whole) if parsed.whole else ContentFile(parsed.markdown.encode("utf-8", "replace"))
    if page:
        digest = hashlib.sha256(document.source_url.encode() + b"\0")
        for piece in content.chunks():
            digest.update(piece)
        page["sha256"] = digest.hexdigest()
        same = document.generation and page["sha256"] == document.metadata.get("content_sha256")
        if same and not overrides.waiting(document):
            if not _settled(document, Status.INDEXED, page, parsed={}):
                raise LeaseLost
            return
        page["name"] = display_name(str(parsed.metadata.get("title") or "") or document.name)
    key = f"documents/{document.workspace_id}/{document.pk}/{uuid.uuid4().hex}.md"
    try:
        with storing():
            stored = default_storage.save(key, content)
    except BaseException:  # a full disk keeps the part that fitted
        discard(key)
        raise
    keys = pictures.store(document, parsed.pictures)
    metadata = {**parsed.metadata, "content_sha256": page["sha256"]} if page else parsed.metadata
    left = {"key": stored, "pages": parsed.pages, "metadata": metadata}
    try:
        with transaction.atomic() if keys or document.attempt > 1 else nullcontext():  # else it is one statement
            kept = _settled(document, Status.PARSED, page, parsed=left)
            replaced = pictures.replace_pending(document, parsed.pictures, keys) if kept else keys
    except NoRoom:
        for one in (*keys, stored):
            discard(one)
        raise
    keys = replaced
    if not kept:
        keys.append(stored)
    for one in keys:
        discard(one)
    if not kept:
        raise LeaseLost


def _settled(document: Document, status: Document.Status, page: dict[str, Any], **fields: Any) -> bool:
    """Settle the step; of a page that was fetched, count what it takes up. NoRoom: nothing is settled."""
    if not page:
        return document.settle(status, **fields)
    try:
        with transaction.atomic():
            count_storage(document, page["size_bytes"] - document.size_bytes)
            settled = document.settle(status, **fields, **page)
            if not settled:
                transaction.set_rollback(True)
            return settled
    except QuotaExceeded as error:
        raise NoRoom from error


def _index(work: Work, embed: "Embed | None") -> None:
    from apps.knowledge.services import indexing  # numpy and the models are for the worker

    document = work.document
    parsed = document.parsed or {
        "key": document.markdown_key,
        "pages": document.metadata.get("pages", []),
        "metadata": {name: value for name, value in document.metadata.items() if name != "pages"},
    }
    try:
        with storing():
            stored = default_storage.open(parsed["key"] or "missing", "rb")
    except FileNotFoundError:
        logger.warning("document %s: its Markdown is gone, it is read again", document.pk)
        with transaction.atomic():
            if document.settle(Status.UPLOADED, parsed={}):
                enqueue(document)
        return
    replaced = document.markdown_key
    fresh = bool(replaced) and replaced != parsed["key"]
    old = pictures.keys(document) if fresh else []
    try:
        with stored:
            indexing.index(work, _parts(stored), parsed, embed=embed or indexing.embed, size_bytes=stored.size)
    except EmbeddingSwitched as error:
        _put_back(document, error)
        return
    if fresh:
        discard(replaced)
    for key in old:
        discard(key)


def _put_back(document: Document, error: DocumentFailure) -> None:
    """Have a claimed document indexed once more, at once; the attempt says why it was stopped."""
    settled = document.settlement(Status.PARSED)
    with transaction.atomic():
        if not document.end(settled, error.code, outcome="cancelled"):
            raise LeaseLost
        enqueue(document)
    document.take(settled)


def _parts(stored: File[bytes]) -> Iterator[Window]:
    """Yield the stored Markdown in windows, holding one of them."""
    with storing():
        if stored.size <= HELD_BYTES:
            yield from in_windows(stored.read().decode())
            return
        with TemporaryFile() as copy:  # on this machine, and of a kind that is read by lines
            shutil.copyfileobj(stored, copy)
            copy.seek(0)
            with TextIOWrapper(copy, "utf-8", newline="\n") as text:
                yield from in_windows(text)
