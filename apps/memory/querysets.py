"""Reads of memory."""

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models

from apps.workspaces.models import User, Workspace

if TYPE_CHECKING:
    from apps.memory.models import ConversationNote, MemoryItem


class MemoryItemQuerySet(models.QuerySet["MemoryItem"]):
    """Reads of memory items: everybody sees and edits only their own."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep the user's own items in workspaces that they still belong to."""
        return self.filter(user_id=user.pk, workspace__in=Workspace.objects.visible_to(user))

    editable_by = visible_to


class NoteQuerySet(models.QuerySet["ConversationNote"]):
    """Reads of conversations' notes: each belongs to the person whose conversation it is of."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep those of the user's own conversations, in workspaces that they still belong to."""
        return self.filter(user_id=user.pk, workspace__in=Workspace.objects.visible_to(user))

    editable_by = visible_to
