"""Writes to memory."""

import re
from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from apps.common.text import legible
from apps.memory.models import ConversationNote, MemoryItem
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
    """
    require("ask", actor=actor, workspace=workspace)
    own = MemoryItem.objects.visible_to(actor).filter(workspace=workspace)
    stored = []
    for text in texts:
        kept = legible(text).strip()[:1000]
        if kept and not own.filter(text=kept).exists():
            stored.append(MemoryItem.objects.create(workspace=workspace, user=actor, kind=kind_of(kept), text=kept))
    return stored


def delete_item(*, item: MemoryItem) -> None:
    """Erase an item that came through ``editable_by``. Nothing keeps a copy: recall reads the rows."""
    item.delete()


def kind_of(text: str) -> str:
    """Return what a statement is about, by its own words."""
    if INTEREST.search(text):
        return MemoryItem.Kind.INTEREST
    return MemoryItem.Kind.PROFILE if PROFILE.search(text) else MemoryItem.Kind.FACT


def store_note(*, workspace: Workspace, conversation: UUID, text: str, actor: User | None) -> None:
    """Keep what a conversation is about now, in place of what was kept before."""
    values = {"workspace": workspace, "user": actor, "text": legible(text)[:1000]}
    ConversationNote.objects.update_or_create(conversation=conversation, defaults=values)


def erase_note(conversation: UUID) -> None:
    """Erase an erased conversation's note."""
    ConversationNote.objects.filter(conversation=conversation).delete()
