"""What the end of a workspace or a person, and an export, mean for conversations; and how long they are kept."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from uuid import UUID

from django.db.models import DateTimeField, ExpressionWrapper, F, Q, Value
from django.db.models.functions import Now
from django.utils import timezone

from apps.conversations.models import Attachment, Conversation, Message
from apps.knowledge.services.documents import discard
from apps.workspaces.exporting import as_lines
from apps.workspaces.models import User, Workspace

LONG_AGO = timedelta(days=1)  # longer than any Undo


def erase_workspace(workspace_id: UUID) -> bool:
    """Delete all conversations of a workspace; the engine erases them. True once none is left."""
    return _erase(Q(workspace=workspace_id))


def erase_person(user_id: UUID) -> bool:
    """Delete all conversations of a person; the engine erases them. True once none is left."""
    return _erase(Q(owner=user_id))


def _erase(whose: Q) -> bool:
    for attachment in Attachment.objects.filter(whose, conversation__isnull=True):
        attachment.delete()
        discard(attachment.file.name or "")
    conversations, before = Conversation.objects.filter(whose), timezone.now() - LONG_AGO
    conversations.filter(Q(deleted_at__isnull=True) | Q(deleted_at__gt=before)).update(deleted_at=before)
    return not conversations.exists()


def expire() -> int:
    """Delete conversations that are older than their workspace keeps them; the engine erases them."""
    age = ExpressionWrapper(
        F("changed_at") + F("workspace__keep_conversations_days") * Value(timedelta(days=1)),
        output_field=DateTimeField(),
    )
    kept = Conversation.objects.filter(workspace__keep_conversations_days__isnull=False, deleted_at__isnull=True)
    old = kept.annotate(ends=age).filter(ends__lt=Now()).values("pk")
    return Conversation.objects.filter(pk__in=old).update(deleted_at=timezone.now() - LONG_AGO)


def export(workspace: Workspace, actor: User) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Export the exporter's own conversations: those of others are theirs."""
    own = Conversation.objects.visible_to(actor).filter(workspace=workspace).order_by("created_at")
    yield "conversations.jsonl", as_lines(list(own.values("id", "title", "created_at", "changed_at")))
    for pk in list(own.values_list("pk", flat=True)):
        said = Message.objects.visible_to(actor).filter(conversation=pk).order_by("created_at", "pk")
        yield f"conversations/{pk}.jsonl", as_lines(list(said.values("id", "turn_id", "role", "text", "created_at")))
