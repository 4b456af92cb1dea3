"""Reads of conversations and what belongs to them: each person's own."""

from typing import TYPE_CHECKING, Any, Self

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Length

from apps.workspaces import rights
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Principal, Who

if TYPE_CHECKING:
    from apps.conversations.models import Attachment, Citation, Conversation, Feedback, Message, Share, Turn


class ConversationQuerySet(models.QuerySet["Conversation"]):
    """Reads of conversations."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep one's own conversations in workspaces that one still belongs to; a visitor's, theirs."""
        return self._own(who, "conversations:read")

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep what ``who`` may ask in, rename or delete: the same, their own."""
        return self._own(who, "conversations:write")

    def _own(self, who: Who, scope: str) -> Self:
        principal = Principal.of(who)
        if principal.kind == "widget" and principal.may(scope):
            return self.filter(
                widget_id=principal.widget_id,
                visitor_id=principal.visitor_id,
                workspace_id=principal.workspace_id,
                deleted_at__isnull=True,
            )
        workspaces = rights.workspaces(principal, scope)
        return self.filter(owner_id=principal.user_id, workspace__in=workspaces, deleted_at__isnull=True)

    def saying(self, text: str) -> Self:
        """Keep what has ``text`` in its title, a question or an answer. Scans the texts of one person."""
        from apps.conversations.models import Message

        said = Message.objects.filter(conversation=OuterRef("pk"), text__icontains=text)
        return self.filter(Q(title__icontains=text) | Exists(said))


class TurnQuerySet(models.QuerySet["Turn"]):
    """Reads of turns."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep turns of conversations that ``who`` may see."""
        from apps.conversations.models import Conversation

        return self.filter(conversation__in=Conversation.objects.visible_to(who))

    def with_answers(self) -> Self:
        """Add ``answer``: what the agent said, None before its first words are stored."""
        from apps.conversations.models import Message

        said = Message.objects.filter(turn=OuterRef("pk"), role="assistant").values("text")[:1]
        return self.annotate(answer=Subquery(said))


class MessageQuerySet(models.QuerySet["Message"]):
    """Reads of messages."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep messages of conversations that ``who`` may see."""
        from apps.conversations.models import Conversation

        return self.filter(conversation__in=Conversation.objects.visible_to(who))


class CitationQuerySet(models.QuerySet["Citation"]):
    """Reads of citations. Seeing a citation does not mean that its document may still be read."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep citations of messages that ``who`` may see."""
        from apps.conversations.models import Message

        return self.filter(message__in=Message.objects.visible_to(who))

    def with_readable(self, who: Who) -> Self:
        """Add ``readable``: whether ``who`` may read, at this moment, what the citation quotes.

        Pages of the web, and files of the conversation itself, are its reader's anyway.
        """
        from apps.knowledge.models import Document

        document = Document.objects.visible_to(who).filter(pk=OuterRef("document_id"))
        theirs = When(Q(document_id=None) | Q(kind="attachment"), then=Value(True))
        return self.annotate(readable=Case(theirs, default=Exists(document)))


class AttachmentQuerySet(models.QuerySet["Attachment"]):
    """Reads of attachments: the owner's, while they see the conversation."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep attachments of conversations that ``who`` may see, and their own that wait for a question."""
        from apps.conversations.models import Conversation

        principal = Principal.of(who)
        workspaces = rights.workspaces(principal, "conversations:read")
        waiting = Q(conversation__isnull=True, owner_id=principal.user_id, workspace__in=workspaces)
        return self.filter(waiting | Q(conversation__in=Conversation.objects.visible_to(principal)))

    def editable_by(self, who: Who) -> Self:
        """Keep what ``who`` may take back: their own, not asked about yet."""
        return self.visible_to(who).filter(conversation__isnull=True)

    def with_facts(self) -> Any:
        """Return what ``as_given`` reads: all but the text, of which only the length."""
        return self.annotate(characters=Length("text")).values("id", "name", "kind", "media_type", "file", "characters")


class FeedbackQuerySet(models.QuerySet["Feedback"]):
    """Reads of feedback."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep feedback on turns that ``who`` may see."""
        from apps.conversations.models import Turn

        return self.filter(turn__in=Turn.objects.visible_to(who))


class ShareQuerySet(models.QuerySet["Share"]):
    """Reads of share links."""

    def visible_to(self, who: Who) -> Self:
        """Keep links that ``who`` may follow, whose token they have to know besides.

        A link ends with its maker's membership and with the conversation: what nobody may see any
        more is not shared either.
        """
        from apps.workspaces.models import Membership

        maker = Membership.objects.running().filter(
            user=OuterRef("conversation__owner"), workspace=OuterRef("conversation__workspace"), user__is_active=True
        )
        open_to = Q(audience="anyone") | Q(conversation__workspace__in=rights.workspaces(who, "conversations:read"))
        return self.filter(open_to, Exists(maker), conversation__deleted_at__isnull=True)
