"""/conversations/, /messages/ and /attachments/."""

from uuid import UUID, uuid4

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents.models import Agent
from apps.common.database import wait_for
from apps.conversations import frames, services
from apps.conversations.api.shapes import (
    AttachmentIn,
    AttachmentOut,
    ConversationChange,
    ConversationIn,
    ConversationOut,
    MessageOut,
    MessageQuery,
    TurnIn,
    TurnOut,
)
from apps.conversations.models import Attachment, Conversation, Message, Turn
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, entered, within

READ, WRITE = "conversations:read", "conversations:write"


class Conversations(ApiView):
    """Your conversations. Nobody else sees them."""

    operations = {
        "GET": Operation(
            output=ConversationOut, query=InWorkspace, many=True, order=("-changed_at", "-pk"), scope=READ
        ),
        "POST": Operation(input=ConversationIn, output=ConversationOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[Conversation]:
        return Conversation.objects.visible_to(self.who)

    def on_get(self, request: Request) -> Response:
        """List your conversations, the latest used first."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Begin a conversation."""
        given = self.taken()
        agent = self.row(given["agent"], Agent.objects.visible_to(self.who)) if given.get("agent") else None
        workspace = entered(self, given.get("workspace") or (agent.workspace_id if agent else None))
        return self.answer(services.start_conversation(workspace=workspace, actor=self.who, agent=agent))


class OneConversation(ApiView):
    """A conversation."""

    operations = {
        "GET": Operation(output=ConversationOut, scope=READ),
        "PATCH": Operation(input=ConversationChange, output=ConversationOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def rows(self) -> QuerySet[Conversation]:
        return Conversation.objects.visible_to(self.who)

    def on_get(self, request: Request, conversation_id: UUID) -> Response:
        """Return a conversation."""
        return self.answer(self.row(conversation_id))

    def on_patch(self, request: Request, conversation_id: UUID) -> Response:
        """Rename, pin or archive a conversation."""
        conversation, given = self.row(conversation_id), self.taken()
        if "title" in given:
            services.rename_conversation(conversation=conversation, title=given["title"], actor=self.who)
        if "pinned" in given:
            services.pin_conversation(conversation=conversation, pinned=given["pinned"], actor=self.who)
        if "archived" in given:
            services.archive_conversation(conversation=conversation, archived=given["archived"], actor=self.who)
        return self.answer(self.row(conversation_id))

    def on_delete(self, request: Request, conversation_id: UUID) -> Response:
        """Delete a conversation, and stop what is being answered in it."""
        conversation = self.row(conversation_id, Conversation.objects.editable_by(self.who))
        services.delete_conversation(conversation=conversation, actor=self.who)
        return self.done()


class TurnsOfConversation(ApiView):
    """The questions and answers of a conversation."""

    operations = {
        "GET": Operation(output=TurnOut, many=True, order=("number", "pk"), scope=READ),
        "POST": Operation(input=TurnIn, output=TurnOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[Turn]:
        return Turn.objects.visible_to(self.who).with_answers()

    def on_get(self, request: Request, conversation_id: UUID) -> Response:
        """List the turns of a conversation, the oldest first."""
        conversation = self.row(conversation_id, Conversation.objects.visible_to(self.who))
        return self.page(self.rows().filter(conversation=conversation))

    def on_post(self, request: Request, conversation_id: UUID) -> Response:
        """Ask a question. The answer is written on the server; follow it by the turn's events."""
        conversation = self.row(conversation_id, Conversation.objects.visible_to(self.who))
        given = self.taken()
        ask = frames.Ask(**{"client_id": uuid4().hex, **given})
        turn = wait_for(services.start_turn, conversation, ask, actor=self.who)
        return self.answer(self.row(turn.pk))


class Messages(ApiView):
    """What was said in your conversations."""

    operations = {
        "GET": Operation(output=MessageOut, query=MessageQuery, many=True, order=("created_at", "pk"), scope=READ)
    }

    def on_get(self, request: Request) -> Response:
        """List messages, the oldest first."""
        return self.page(Message.objects.visible_to(self.who).filter(**self.asked()))


class OneMessage(ApiView):
    """A message."""

    operations = {"GET": Operation(output=MessageOut, scope=READ)}

    def on_get(self, request: Request, message_id: UUID) -> Response:
        """Return a message."""
        return self.answer(self.row(message_id, Message.objects.visible_to(self.who)))


class Attachments(ApiView):
    """Files that come with questions."""

    operations = {
        "GET": Operation(output=AttachmentOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=AttachmentIn, output=AttachmentOut, status=201, files=True, scope=WRITE),
    }

    def rows(self) -> QuerySet[Attachment]:
        return Attachment.objects.visible_to(self.who).defer("text")

    def on_get(self, request: Request) -> Response:
        """List your attachments, the newest first."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Upload a file for the next question, as a form with the part `file`; it is read at once."""
        given = self.taken()
        workspace, file = entered(self, given.get("workspace")), given["file"]
        made = services.add_attachment(workspace=workspace, file=file, name=file.name or "", actor=self.who)
        return self.answer(made)


class OneAttachment(ApiView):
    """A file that comes with a question."""

    operations = {
        "GET": Operation(output=AttachmentOut, scope=READ),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, attachment_id: UUID) -> Response:
        """Return an attachment."""
        return self.answer(self.row(attachment_id, Attachment.objects.visible_to(self.who)))

    def on_delete(self, request: Request, attachment_id: UUID) -> Response:
        """Take back a file that nothing was asked about yet."""
        attachment = self.row(attachment_id, Attachment.objects.editable_by(self.who))
        services.remove_attachment(attachment=attachment, actor=self.who)
        return self.done()
