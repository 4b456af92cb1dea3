"""Reads of conversations and what belongs to them: each person's own."""

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models

from apps.workspaces.models import User, Workspace

if TYPE_CHECKING:
    from apps.conversations.models import Citation, Conversation, Message, Turn


class ConversationQuerySet(models.QuerySet["Conversation"]):
    """Reads of conversations."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep the user's own conversations in workspaces that they still belong to."""
        return self.filter(owner_id=user.pk, workspace__in=Workspace.objects.visible_to(user), deleted_at__isnull=True)

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep what ``user`` may rename or delete: the same, their own."""
        return self.visible_to(user)


class TurnQuerySet(models.QuerySet["Turn"]):
    """Reads of turns."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep turns of conversations that ``user`` may see."""
        from apps.conversations.models import Conversation

        return self.filter(conversation__in=Conversation.objects.visible_to(user))


class MessageQuerySet(models.QuerySet["Message"]):
    """Reads of messages."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep messages of conversations that ``user`` may see."""
        from apps.conversations.models import Conversation

        return self.filter(conversation__in=Conversation.objects.visible_to(user))


class CitationQuerySet(models.QuerySet["Citation"]):
    """Reads of citations. Seeing a citation does not mean that its document may still be read."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep citations of messages that ``user`` may see."""
        from apps.conversations.models import Message

        return self.filter(message__in=Message.objects.visible_to(user))
