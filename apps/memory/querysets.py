"""Reads of memory."""

from typing import TYPE_CHECKING, Self

from django.db import models

from apps.workspaces import rights
from apps.workspaces.principals import Who

if TYPE_CHECKING:
    from apps.memory.models import ConversationNote, MemoryItem


class MemoryItemQuerySet(models.QuerySet["MemoryItem"]):
    """Reads of memory items: everybody sees and edits only their own."""

    def visible_to(self, who: Who) -> Self:
        """Keep one's own items in workspaces that one still belongs to; visitors of widgets have none."""
        return self.filter(rights.own(who, "memory:read"))

    def editable_by(self, who: Who) -> Self:
        """Keep what ``who`` may change or erase: the same, their own."""
        return self.filter(rights.own(who, "memory:write"))


class NoteQuerySet(models.QuerySet["ConversationNote"]):
    """Reads of conversations' notes: each belongs to the person whose conversation it is of."""

    def visible_to(self, who: Who) -> Self:
        """Keep those of one's own conversations, in workspaces that one still belongs to."""
        return self.filter(rights.own(who, "conversations:read"))

    editable_by = visible_to
