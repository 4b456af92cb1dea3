"""Reads of memory."""

from typing import TYPE_CHECKING, Self

from django.db import models

from apps.workspaces import rights
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Who

if TYPE_CHECKING:
    from apps.memory.models import ConversationNote, DocumentAffinity, MemoryItem, MemorySwitch


class MemoryItemQuerySet(models.QuerySet["MemoryItem"]):
    """Reads of memory items: everybody sees and edits only their own."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep one's own items in workspaces that one still belongs to; visitors of widgets have none."""
        return self.filter(rights.own(who, "memory:read"))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep what ``who`` may change or erase: the same, their own."""
        return self.filter(rights.own(who, "memory:write"))


class NoteQuerySet(models.QuerySet["ConversationNote"]):
    """Reads of conversations' notes: each belongs to the person whose conversation it is of."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep those of one's own conversations, in workspaces that one still belongs to."""
        return self.filter(rights.own(who, "conversations:read"))

    editable_by = visible_to


class AffinityQuerySet(models.QuerySet["DocumentAffinity"]):
    """Reads of affinities: one's own, of documents that one may still read."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep one's own, of documents that one may read at this moment."""
        from apps.knowledge.models import Document

        return self.filter(rights.own(who, "memory:read"), document__in=Document.objects.visible_to(who))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep one's own, whether the document may still be read or not."""
        return self.filter(rights.own(who, "memory:write"))

    def often(self) -> Self:
        """Keep documents that at least two answers cited, the most cited first."""
        return self.filter(citations__gte=2).order_by("-citations", "-changed_at")


class MemorySwitchQuerySet(models.QuerySet["MemorySwitch"]):
    """Reads of switches: one's own."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep one's own, in workspaces that one still belongs to."""
        return self.filter(rights.own(who, "memory:read"))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep what ``who`` may change: the same, their own."""
        return self.filter(rights.own(who, "memory:write"))
