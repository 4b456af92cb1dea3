"""Content on its way in: a new document, or new content of one that is there."""

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any, Literal

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from apps.common.database import insert, run
from apps.common.errors import NotFound
from apps.common.text import display_name
from apps.knowledge.errors import EmptyFile, FileTooLarge, SameContent, SameName
from apps.knowledge.models import Document, Folder, Job, KnowledgeBase
from apps.knowledge.models.documents import storage_key
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.services.batches import tags_of
from apps.knowledge.services.documents import discard, enqueue, storing
from apps.workspaces import audit
from apps.workspaces.models import User
from apps.workspaces.services import quotas

IfSameName = Literal["keep", "replace", "ask"]

NAMESAKE = """
    SELECT id FROM knowledge_document
    WHERE knowledge_base_id = %s AND folder_id IS NOT DISTINCT FROM %s AND name = %s AND deleted_at IS NULL
        AND sha256 <> %s
    ORDER BY id LIMIT 1
"""


def add_document(
    *,
    knowledge_base: KnowledgeBase,
    file: File[bytes],
    name: str,
    actor: User,
    folder: Folder | None = None,
    tags: Sequence[str] = (),
    job: Job | None = None,
    password: str = "",
    if_same_name: IfSameName = "keep",
    **fields: Any,
) -> Document:
    """Store a file and queue it; the same bytes again give the document that is already there.

    The queue's row is written in the document's transaction, so neither exists without the other.
    ``if_same_name`` says what becomes of another document of this name in the same folder: it stays
    beside the new one, which is numbered; or gets the new content; or SameName asks.

    Raises:
        EmptyFile, FileTooLarge, UnsupportedFileType, TypeMismatch, SameName: nothing was stored.
        QuotaExceeded: the workspace or the person has no room; nothing was stored.
        NoSpace, StorageFailed: the file store is full or down; nothing was stored.
    """
    size, digest = measured(file)
    name = display_name(name)
    namesake = _namesake(knowledge_base, folder, name, digest)
    if namesake and if_same_name == "ask":
        changed = namesake.overrides.in_use().count()
        raise SameName(name=name, document=str(namesake.pk), changed_passages=changed)
    if namesake and if_same_name == "replace":
        replace_content(document=namesake, file=file, actor=actor, password=password, job=job)
        return namesake
    document = Document(
        workspace_id=knowledge_base.workspace_id,
        knowledge_base=knowledge_base,
        folder=folder,
        tags=tags_of(tags),
        job=job,
        password=password or None,
        name=_numbered(knowledge_base, folder, name) if namesake else name,
        content_type=fields.pop("content_type", "") or sniff_file(file, name),
        size_bytes=size,
        sha256=digest,
        uploaded_by=actor,
        **fields,
    )
    key = storage_key(document, "original")
    file.seek(0)
    try:
        with storing():
            document.file.name = default_storage.save(key, file)
    except BaseException:  # a full disk keeps the part that fitted
        discard(key)
        raise
    try:
        with transaction.atomic():
            insert(document)
            place = document.workspace_id
            quotas.take_with_all(workspace_id=place, user_id=actor.pk, storage=size, documents=1, uploads=1)
            audit.did("document.added", document, who=actor)
            enqueue(document)
    except IntegrityError:  # most files are new, so the constraint is asked and not a query before it
        discard(document.file.name or "")
        there = _same_content(knowledge_base, digest)
        if there is None:
            raise
        return there
    except BaseException:
        discard(document.file.name or "")
        raise
    return document


def replace_content(
    *, document: Document, file: File[bytes], actor: User | None, password: str = "", **fields: Any
) -> bool:
    """Give a document new bytes and queue it; False, and nothing is done, if they are the old ones.

    What it holds answers until the new content is indexed. Work on the old content is void at once:
    its claim no longer holds. ``fields`` are changed with it.

    Raises:
        EmptyFile, FileTooLarge, UnsupportedFileType, TypeMismatch: nothing was changed.
        SameContent: another document of the base has these bytes. Nothing was changed.
        NotFound: the document was deleted meanwhile. QuotaExceeded: there is no room. Nothing was changed.
        NoSpace, StorageFailed: nothing was changed.
    """
    size, digest = measured(file)
    if digest == document.sha256:
        return False
    content_type = fields.pop("content_type", "") or sniff_file(file, fields.get("name", document.name))
    key = f"documents/{document.workspace_id}/{document.pk}/original-{uuid.uuid4().hex}"
    file.seek(0)
    try:
        with storing():
            default_storage.save(key, file)
    except BaseException:
        discard(key)
        raise
    replaced = document.file.name or ""
    changed: dict[str, Any] = {
        "file": key,
        "size_bytes": size,
        "sha256": digest,
        "content_type": content_type,
        "password": password or None,
        "status": Document.Status.UPLOADED,
        "error_code": "",
        "error_details": {},
        "interruptions": 0,
        "lease_until": None,
        "stage": "",
        "progress": 0.0,
        "cancel_requested": False,
        "changed_at": timezone.now(),
        **{name: value for name, value in fields.items() if value is not None},
    }
    try:
        with transaction.atomic():
            alive = Document.objects.filter(pk=document.pk, deleted_at__isnull=True)
            before = alive.select_for_update().first()
            if before is None:
                raise NotFound
            count_storage(before, size - before.size_bytes)
            if actor:
                audit.did("document.replaced", before, who=actor)
            alive.update(**changed, attempt=F("attempt") + 1)
            enqueue(document)
    except IntegrityError as error:
        discard(key)
        there = _same_content(document.knowledge_base, digest)
        raise SameContent(name=there.name if there else "") from error
    except BaseException:
        discard(key)
        raise
    discard(replaced)
    document.refresh_from_db()
    return True


def count_storage(document: Document, more: int) -> None:
    """Count that a document's original takes more bytes than before, or fewer. In the caller's transaction.

    Raises:
        QuotaExceeded: there is no room for more.
    """
    place, person = document.workspace_id, document.uploaded_by_id
    if more > 0:
        quotas.take(workspace_id=place, user_id=person, storage=more)
    else:
        quotas.give_back(workspace_id=place, user_id=person, storage=-more)


def measured(file: File[bytes]) -> tuple[int, str]:
    """Return the file's true size and SHA-256, reading no further than the limit.

    Raises:
        EmptyFile, FileTooLarge: there is nothing in it, or more than the operator allows.
    """
    digest = hashlib.sha256()
    size = 0
    file.seek(0)
    while block := file.read(1 << 20):
        size += len(block)
        if size > settings.MAX_UPLOAD_BYTES:
            raise FileTooLarge(limit_mb=settings.MAX_UPLOAD_BYTES >> 20)
        digest.update(block)
    if not size:
        raise EmptyFile
    return size, digest.hexdigest()


def _same_content(knowledge_base: KnowledgeBase, digest: str) -> Document | None:
    return Document.objects.filter(knowledge_base=knowledge_base, sha256=digest, deleted_at__isnull=True).first()


def _namesake(knowledge_base: KnowledgeBase, folder: Folder | None, name: str, digest: str) -> Document | None:
    """Return the document of this name in this folder that has other content; mostly there is none."""
    there = run(NAMESAKE, [knowledge_base.pk, folder.pk if folder else None, name, digest])
    return (
        Document.objects.select_related("knowledge_base").filter(pk__in=[pk for (pk,) in there]).first()
        if there
        else None
    )


def _numbered(knowledge_base: KnowledgeBase, folder: Folder | None, name: str) -> str:
    """Return the name with the first number behind it that is free: ``plan (2).pdf``."""
    stem, dot, extension = name.rpartition(".")
    if not dot:
        stem, extension = name, ""
    taken = set(
        Document.objects.filter(
            knowledge_base=knowledge_base, folder=folder, name__startswith=f"{stem} (", deleted_at__isnull=True
        ).values_list("name", flat=True)
    )
    number = 2
    while (found := f"{stem} ({number}){dot}{extension}") in taken:
        number += 1
    return display_name(found)
