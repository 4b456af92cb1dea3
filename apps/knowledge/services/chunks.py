"""People's changes to passages: not to be found, found again, or to read otherwise."""

from collections.abc import Collection

from django.db import transaction

from apps.common.errors import InvalidInput
from apps.common.text import legible
from apps.knowledge import storage
from apps.knowledge.errors import BusyDocument
from apps.knowledge.models import Chunk, ChunkOverride, Document
from apps.knowledge.services.documents import reindex_document
from apps.workspaces import audit
from apps.workspaces.models import User

LONGEST = 20_000  # characters of an edited passage


@transaction.atomic
def disable_chunk(*, chunk: Chunk, actor: User) -> None:
    """Have a passage found no more, from now on. The document's text stays as it is.

    Raises:
        BusyDocument: the document is being worked on.
    """
    passage = _passage(chunk, (*Document.INDEX_FROM, Document.Status.ERROR_PARSING))
    _change(passage, actor, disabled=True)
    storage.hide_passage(passage.pk)


@transaction.atomic
def enable_chunk(*, chunk: Chunk, actor: User) -> None:
    """Have a passage found again: its document is queued to be indexed again, which takes up what is there.

    Raises:
        BusyDocument: the document is being worked on.
    """
    passage = _passage(chunk)
    _change(passage, actor, disabled=False)
    reindex_document(document=passage.document, actor=actor)


@transaction.atomic
def edit_chunk(*, chunk: Chunk, text: str, actor: User) -> None:
    """Have a passage read otherwise; an empty text, or the original one, takes the change back.

    The old text answers until the document is indexed again, for which it is queued.

    Raises:
        BusyDocument: the document is being worked on.
        InvalidInput: the text is too long.
    """
    text = legible(text).replace("\r\n", "\n").strip()
    if len(text) > LONGEST:
        raise InvalidInput(field="text", reason=f"at most {LONGEST} characters")
    passage = _passage(chunk)
    if text == passage.text:
        return
    _change(passage, actor, text=text)
    reindex_document(document=passage.document, actor=actor)


@transaction.atomic
def discard_override(*, override: ChunkOverride, actor: User) -> None:
    """Let go a change that no passage of the document fits any more."""
    audit.did("passage.change_let_go", override.document, who=actor)
    override.delete()


def _passage(chunk: Chunk, among: Collection[Document.Status] = Document.INDEX_FROM) -> Chunk:
    """Lock the document and return the passage that a chunk is, or is a part of."""
    document = Document.objects.select_for_update().get(pk=chunk.document_id)
    if document.status not in among or document.deleted_at:
        raise BusyDocument(state=document.get_status_display())
    passage = chunk.parent if chunk.level == Chunk.CHILD and chunk.parent else chunk
    passage.document = document
    return passage


def _change(passage: Chunk, actor: User, *, text: str | None = None, disabled: bool | None = None) -> None:
    done = "edited" if disabled is None else "disabled" if disabled else "enabled"
    audit.did(f"passage.{done}", passage.document, who=actor, passage=str(passage.pk))
    override, _ = ChunkOverride.objects.get_or_create(
        document=passage.document,
        content_hash=passage.content_hash,
        defaults={"original": passage.text, "changed_by": actor},
    )
    if text is not None:
        override.text = "" if text == override.original else text
    if disabled is not None:
        override.disabled = disabled
    if override.text or override.disabled:
        override.changed_by = actor
        override.save()
    else:
        override.delete()
