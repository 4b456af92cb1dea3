"""Conversations whose Undo has lapsed: the graph's state first, then the files, then the rows."""

from datetime import timedelta
from uuid import UUID

from django.utils import timezone
from django.utils.module_loading import import_string

from apps.common.database import in_db
from apps.conversations import leaving
from apps.conversations.models import Attachment, Conversation, Turn
from apps.knowledge.services.documents import discard
from apps.models import ledger

KEEP = timedelta(days=1)  # how long a file waits for a question
UNDO = timedelta(seconds=60)  # how long a deleted conversation can be restored


async def erase_deleted() -> None:
    """Erase what was deleted more than a minute ago, or is kept no longer. Several processes may do it at once."""
    await in_db(leaving.expire)
    for conversation_id in await in_db(_lapsed):
        await import_string("apps.agents.runner.forget")(conversation_id)
        await in_db(_erase, conversation_id)
    await in_db(erase_waiting)


def _lapsed() -> list[UUID]:
    before = timezone.now() - UNDO
    lapsed = Conversation.objects.filter(deleted_at__lt=before).exclude(turns__status__in=Turn.ACTIVE)
    return list(lapsed.values_list("pk", flat=True)[:100])


def _erase(conversation_id: UUID) -> None:
    gone = Conversation.objects.filter(pk=conversation_id, deleted_at__isnull=False)
    for attachment in Attachment.objects.filter(conversation__in=gone):
        discard(attachment.file.name or "")
    if Conversation.objects.filter(pk=conversation_id, deleted_at__isnull=False).delete()[0]:
        ledger.erase_conversation(conversation_id)


def erase_waiting() -> None:
    """Erase files that nobody asked about within a day."""
    old = Attachment.objects.filter(conversation__isnull=True, created_at__lt=timezone.now() - KEEP)
    for attachment in old[:200]:
        if Attachment.objects.filter(pk=attachment.pk, conversation__isnull=True).delete()[0]:
            discard(attachment.file.name or "")
