"""Conversations whose Undo has lapsed: the graph's state first, then the rows."""

from datetime import timedelta
from uuid import UUID

from django.utils import timezone
from django.utils.module_loading import import_string

from apps.common.database import in_db
from apps.conversations.models import Conversation, Turn
from apps.models import ledger

UNDO = timedelta(seconds=60)  # how long a deleted conversation can be restored


async def erase_deleted() -> None:
    """Erase what was deleted more than a minute ago. Several processes may do it at once."""
    for conversation_id in await in_db(_lapsed):
        await import_string("apps.agents.runner.forget")(conversation_id)
        await in_db(_erase, conversation_id)


def _lapsed() -> list[UUID]:
    before = timezone.now() - UNDO
    lapsed = Conversation.objects.filter(deleted_at__lt=before).exclude(turns__status__in=Turn.ACTIVE)
    return list(lapsed.values_list("pk", flat=True)[:100])


def _erase(conversation_id: UUID) -> None:
    if Conversation.objects.filter(pk=conversation_id, deleted_at__isnull=False).delete()[0]:
        ledger.erase_conversation(conversation_id)
