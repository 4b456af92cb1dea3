"""Writes to memory."""

import re
from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.common.errors import InvalidInput
from apps.common.text import legible
from apps.knowledge.models import Document
from apps.memory.errors import MemoryOff
from apps.memory.models import ConversationNote, DocumentAffinity, MemoryItem, MemorySwitch
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import require

PROFILE = re.compile(
    r"\b(?:i am|i'm|my name|my (?:role|job|team|title|department)|i work|call me)\b"
    r"|我是|我叫|我的(?:名字|职位|部门|团队)|我在.{0,20}工作|叫我",
    re.IGNORECASE,
)
INTEREST = re.compile(
    r"\b(?:i (?:like|prefer|love|follow|care about)|(?:i'm|i am) interested|interested in)\b"
    r"|我(?:喜欢|偏好|关注|感兴趣)|感兴趣",
    re.IGNORECASE,
)


@transaction.atomic
def store_items(*, workspace: Workspace, texts: Sequence[str], actor: User) -> list[MemoryItem]:
    """Keep what a person said to remember; a statement that is kept already is not kept twice.

    Raises:
        NotFound: the actor is not in the workspace.
        MemoryOff: they have switched their memory off here.
    """
    require("ask", actor=actor, workspace=workspace)
    if is_off(workspace=workspace, actor=actor):
        raise MemoryOff
    own = MemoryItem.objects.visible_to(actor).filter(workspace=workspace)
    stored = []
    for text in texts:
        kept = legible(text).strip()[:1000]
        if kept and not own.filter(text=kept).exists():
            stored.append(MemoryItem.objects.create(workspace=workspace, user=actor, kind=kind_of(kept), text=kept))
    return stored


def update_item(*, item: MemoryItem, text: str) -> None:
    """Change the words of an item that came through ``editable_by``; its kind follows them.

    Raises:
        InvalidInput: there is nothing left to remember.
    """
    kept = legible(text).strip()[:1000]
    if not kept:
        raise InvalidInput(field="text", reason="it is empty")
    item.text, item.kind = kept, kind_of(kept)
    item.save(update_fields=["text", "kind"])


def is_off(*, workspace: Workspace, actor: User) -> bool:
    """Return whether a person's memory is switched off: nothing is read, nothing is written."""
    return MemorySwitch.objects.visible_to(actor).filter(workspace=workspace).exists()


def switch(*, workspace: Workspace, actor: User, on: bool) -> None:
    """Switch a person's memory on or off; what is there stays, and is theirs to erase."""
    require("ask", actor=actor, workspace=workspace)
    if on:
        MemorySwitch.objects.editable_by(actor).filter(workspace=workspace).delete()
    else:
        MemorySwitch.objects.get_or_create(workspace=workspace, user=actor)


def count_citations(*, workspace: Workspace, actor: User, documents: Collection[UUID]) -> None:
    """Count that an answer to a person cited documents; what is no document of this workspace does not count."""
    if is_off(workspace=workspace, actor=actor):
        return
    known = Document.objects.visible_to(actor).filter(workspace=workspace, pk__in=documents)
    for document in known.values_list("pk", flat=True):
        _row, created = DocumentAffinity.objects.get_or_create(
            user=actor, document_id=document, defaults={"workspace": workspace}
        )
        if not created:
            DocumentAffinity.objects.filter(user=actor, document=document).update(
                citations=F("citations") + 1, changed_at=timezone.now()
            )


def forget_document(*, affinity: DocumentAffinity) -> None:
    """Forget that a document was consulted; the row came through ``editable_by``."""
    affinity.delete()


def delete_item(*, item: MemoryItem) -> None:
    """Erase an item that came through ``editable_by``. Nothing keeps a copy: recall reads the rows."""
    item.delete()


def kind_of(text: str) -> str:
    """Return what a statement is about, by its own words."""
    if INTEREST.search(text):
        return MemoryItem.Kind.INTEREST
    return MemoryItem.Kind.PROFILE if PROFILE.search(text) else MemoryItem.Kind.FACT


def store_note(
    *, workspace: Workspace, conversation: UUID, text: str, documents: Iterable[UUID], actor: User | None
) -> None:
    """Keep what a conversation is about now, in place of what was kept before."""
    note = ConversationNote(
        conversation=conversation,
        workspace=workspace,
        user=actor,
        text=legible(text)[:1000],
        documents=list(documents),
    )
    kept = ["workspace", "user", "text", "documents", "changed_at"]
    ConversationNote.objects.bulk_create(
        [note], update_conflicts=True, unique_fields=["conversation"], update_fields=kept
    )


def erase_note(conversation: UUID) -> None:
    """Erase an erased conversation's note."""
    ConversationNote.objects.filter(conversation=conversation).delete()
