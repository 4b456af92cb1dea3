"""Documents that are no uploaded files: web pages, texts written here, questions and answers; and locked files."""

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput
from apps.common.outbound.errors import OutboundError, OutboundTooLarge
from apps.common.outbound.fetching import fetch
from apps.common.text import display_name, legible
from apps.common.waiting import while_wanted
from apps.knowledge import questions
from apps.knowledge.errors import BusyDocument, FileTooLarge, PageUnreachable
from apps.knowledge.models import Document, Folder, KnowledgeBase
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.questions import Pair
from apps.knowledge.services.documents import discard, enqueue, storing
from apps.knowledge.services.intake import add_document, measured, replace_content
from apps.workspaces import audit
from apps.workspaces.models import User
from apps.workspaces.services import quotas

Kind, Status = Document.Kind, Document.Status
FETCH_S = 60.0
LONGEST_ADDRESS = 2_000
MOST_HOURS = 24 * 366


def add_page(
    *,
    knowledge_base: KnowledgeBase,
    url: str,
    actor: User,
    folder: Folder | None = None,
    refresh_hours: int | None = None,
) -> Document:
    """Queue a web page; the worker fetches it. The same address again gives the document that is there.

    Raises:
        InvalidInput: no http(s) address, or a time between refreshes that cannot be used.
        QuotaExceeded: the workspace or the person has no room for another document.
    """
    address = address_of(url)
    parts = urlsplit(address)
    document = Document(
        workspace_id=knowledge_base.workspace_id,
        knowledge_base=knowledge_base,
        kind=Kind.WEB,
        folder=folder,
        name=display_name(f"{parts.netloc}{parts.path}".replace("/", " ")),
        source_url=address,
        refresh_hours=_hours(refresh_hours),
        size_bytes=0,
        sha256=hashlib.sha256(b"page\0" + address.encode()).hexdigest(),
        uploaded_by=actor,
    )
    document.refresh_at = next_refresh(document)  # also where the first fetch fails
    try:
        with transaction.atomic():
            document.save(force_insert=True)
            quotas.take(workspace_id=document.workspace_id, user_id=actor.pk, documents=1, uploads=1)
            audit.did("document.added", document, who=actor)
            enqueue(document)
    except IntegrityError:
        return Document.objects.get(knowledge_base=knowledge_base, source_url=address, deleted_at__isnull=True)
    return document


def refresh_page(*, document: Document, actor: User | None) -> None:
    """Fetch a page again. Where its text is the same nothing else is done.

    Raises:
        BusyDocument: it is queued or being worked on, or is no page.
    """
    again = Document.objects.filter(pk=document.pk, kind=Kind.WEB, status__in=Document.FINAL, deleted_at__isnull=True)
    with transaction.atomic():
        moved = again.update(
            status=Status.UPLOADED,
            fetched_at=None,
            refresh_at=next_refresh(document),
            error_code="",
            error_details={},
            interruptions=0,
            changed_at=timezone.now(),
        )
        document.refresh_from_db()
        if not moved:
            raise BusyDocument(state=document.get_status_display())
        if actor:
            audit.did("document.fetched_again", document, who=actor)
        enqueue(document)


def schedule_page(*, document: Document, refresh_hours: int | None, actor: User) -> None:
    """Have a page fetched every so many hours, None for by hand only.

    Raises:
        InvalidInput: the number cannot be used.
    """
    document.refresh_hours = _hours(refresh_hours)
    document.refresh_at = next_refresh(document)
    with transaction.atomic():
        document.save(update_fields=["refresh_hours", "refresh_at"])
        audit.did("document.scheduled", document, who=actor, hours=document.refresh_hours)


def refresh_due() -> int:
    """Fetch the pages again whose time has come; return how many. Run by the sweeper."""
    due = Document.objects.filter(refresh_at__lt=timezone.now(), status__in=Document.FINAL, deleted_at__isnull=True)
    count = 0
    for document in due[:200]:
        try:
            refresh_page(document=document, actor=None)
        except BusyDocument:  # another sweeper was faster
            continue
        count += 1
    return count


def fetched(document: Document, check: Callable[[], None]) -> dict[str, Any]:
    """Fetch a document's page into the file store; return what changes on its row. For the worker.

    ``check`` is called four times a second meanwhile; what it raises ends it.

    Raises:
        PageUnreachable, FileTooLarge, UnsupportedFileType: nothing was stored.
        NoSpace, StorageFailed: nothing was stored.
    """
    try:
        page = fetch(document.source_url, max_bytes=settings.MAX_UPLOAD_BYTES, timeout_s=FETCH_S)
        got = asyncio.run(while_wanted(page, check))
    except OutboundTooLarge as error:
        raise FileTooLarge(limit_mb=settings.MAX_UPLOAD_BYTES >> 20) from error
    except OutboundError as error:
        raise PageUnreachable(reason=error.message) from error
    if got.status != 200:
        raise PageUnreachable(reason=f"HTTP {got.status}")
    file = ContentFile(got.body)
    kind = sniff_file(file, f"page{_extension(got.url, got.content_type)}")
    key = f"documents/{document.workspace_id}/{document.pk}/original-{uuid.uuid4().hex}"
    file.seek(0)
    try:
        with storing():
            default_storage.save(key, file)
    except BaseException:
        discard(key)
        raise
    now = timezone.now()
    return {
        "file": key,
        "size_bytes": len(got.body),
        "content_type": kind,
        "fetched_at": now,
        "refresh_at": next_refresh(document),
    }


def next_refresh(document: Document) -> Any:
    """Return when a page is to be fetched next, None if only by hand."""
    return timezone.now() + timedelta(hours=document.refresh_hours) if document.refresh_hours else None


def add_text(
    *, knowledge_base: KnowledgeBase, name: str, text: str, actor: User, folder: Folder | None = None
) -> Document:
    """Take in a text that was written here.

    Raises:
        InvalidInput: it has no name. EmptyFile, FileTooLarge: nothing was stored.
    """
    return add_document(
        knowledge_base=knowledge_base,
        file=_text(text),
        name=_title(name),
        actor=actor,
        folder=folder,
        kind=Kind.TEXT,
        content_type="text/markdown",
    )


def edit_text(*, document: Document, name: str, text: str, actor: User) -> bool:
    """Change a text that was written here; False if nothing is different.

    Raises:
        BusyDocument: the document is none. InvalidInput, EmptyFile, FileTooLarge, SameContent.
    """
    if document.kind != Kind.TEXT:
        raise BusyDocument(state=document.get_status_display())
    return _changed(document, name, _text(text), actor, "text/markdown")


def is_other_text(*, document: Document, text: str) -> bool:
    """Whether this is another text than the document has, so that ``edit_text`` has it cut and embedded anew."""
    return measured(_text(text))[1] != document.sha256


def add_questions(
    *, knowledge_base: KnowledgeBase, name: str, pairs: Sequence[Pair], actor: User, folder: Folder | None = None
) -> Document:
    """Take in questions and answers. Each pair becomes a passage of its own.

    Raises:
        InvalidInput: no name, or no pair with a question and an answer.
    """
    return add_document(
        knowledge_base=knowledge_base,
        file=ContentFile(questions.stored(_pairs(pairs))),
        name=_title(name),
        actor=actor,
        folder=folder,
        kind=Kind.QA,
        content_type=questions.CONTENT_TYPE,
    )


def edit_questions(*, document: Document, name: str, pairs: Sequence[Pair], actor: User) -> bool:
    """Put other pairs in place of those that are there; False if nothing is different.

    Raises:
        BusyDocument: the document holds none. InvalidInput, SameContent.
    """
    if document.kind != Kind.QA:
        raise BusyDocument(state=document.get_status_display())
    return _changed(document, name, ContentFile(questions.stored(_pairs(pairs))), actor, questions.CONTENT_TYPE)


def are_other_questions(*, document: Document, pairs: Sequence[Pair]) -> bool:
    """Whether these are other pairs than the document has, so that ``edit_questions`` has them embedded anew."""
    return measured(ContentFile(questions.stored(_pairs(pairs))))[1] != document.sha256


def unlock_document(*, document: Document, password: str, actor: User) -> None:
    """Try a locked file with a password. It is kept encrypted, for the next time the file is read.

    Raises:
        BusyDocument: the document does not wait for one.
    """
    locked = Document.objects.filter(pk=document.pk, error_code="password_required", deleted_at__isnull=True)
    with transaction.atomic():
        row = locked.select_for_update().first()
        if row is None:
            document.refresh_from_db()
            raise BusyDocument(state=document.get_status_display())
        row.password, row.status, row.error_code, row.error_details = password, Status.UPLOADED, "", {}
        row.save(update_fields=["password", "status", "error_code", "error_details", "changed_at"])
        audit.did("document.unlocked", row, who=actor)
        enqueue(row)
    document.refresh_from_db()


def address_of(url: str) -> str:
    """Return a page's address without what a server never sees.

    Raises:
        InvalidInput: it is none of http or https, too long, or holds a name or a password.
    """
    try:
        parts = urlsplit(legible(url).strip())
    except ValueError as error:
        raise InvalidInput(field="url", reason=_("this is not an address")) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or len(url) > LONGEST_ADDRESS:
        raise InvalidInput(field="url", reason=_("it must begin with http:// or https://"))
    if "@" in parts.netloc:
        raise InvalidInput(field="url", reason=_("it must not hold a name or a password"))
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", parts.query, ""))


def _changed(document: Document, name: str, file: ContentFile[bytes], actor: User, content_type: str) -> bool:
    title = _title(name)
    if replace_content(document=document, file=file, actor=actor, content_type=content_type, name=title):
        return True
    if title == document.name:
        return False
    with transaction.atomic():
        audit.did("document.renamed", document, who=actor, to=title)
        Document.objects.filter(pk=document.pk).update(name=title)
    document.refresh_from_db()
    return True


def _text(text: str) -> ContentFile[bytes]:
    return ContentFile(legible(text).strip().encode())


def _title(name: str) -> str:
    if not legible(name).strip():
        raise InvalidInput(field="name", reason=_("it is empty"))
    return display_name(name)


def _pairs(pairs: Sequence[Pair]) -> list[Pair]:
    found = questions.cleaned(pairs)
    if not found:
        raise InvalidInput(field="pairs", reason=_("no question has an answer"))
    if len(found) > questions.MOST_PAIRS:
        told = _("there are %(count)s pairs, and one list holds %(most)s")
        raise InvalidInput(field="pairs", reason=told % {"count": len(found), "most": questions.MOST_PAIRS})
    if sum(len(half.encode()) for pair in found for half in pair) > questions.LARGEST_LIST:
        told = _("together they are larger than the %(limit_mb)s MB that one list holds")
        raise InvalidInput(field="pairs", reason=told % {"limit_mb": questions.LARGEST_LIST >> 20})
    for pair in found:
        if len(pair.question) > questions.LONGEST_QUESTION or len(pair.answer) > questions.LONGEST_ANSWER:
            told = _(
                "“%(question)s” or its answer is too long: %(of_question)s and %(of_answer)s characters are the most"
            )
            most = {"of_question": questions.LONGEST_QUESTION, "of_answer": questions.LONGEST_ANSWER}
            raise InvalidInput(field="pairs", reason=told % {"question": pair.question[:80], **most})
    return found


def _hours(hours: int | None) -> int | None:
    if hours is not None and not 1 <= hours <= MOST_HOURS:
        raise InvalidInput(field="refresh_hours", reason=_("must be between 1 and %(most)s") % {"most": MOST_HOURS})
    return hours


def _extension(url: str, content_type: str) -> str:
    if "html" in content_type:
        return ".html"
    last = urlsplit(url).path.rpartition("/")[2]
    return f".{last.rpartition('.')[2]}" if "." in last else ".html" if not content_type else ".txt"
