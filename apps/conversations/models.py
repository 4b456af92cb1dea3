"""Conversations: their turns, the turns' events, the messages, and what the answers cite."""

import secrets
import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.agents.models import Agent
from apps.conversations.querysets import (
    AttachmentQuerySet,
    CitationQuerySet,
    ConversationQuerySet,
    FeedbackQuerySet,
    MessageQuerySet,
    ShareQuerySet,
    TurnQuerySet,
)
from apps.workspaces.models import Workspace


def attachment_path(attachment: "Attachment", _name: str) -> str:
    """Return where an attachment's bytes lie: by its id, never by its name."""
    return f"attachments/{attachment.pk}"


def new_token() -> str:
    """Return the secret part of a share link: 256 bits."""
    return secrets.token_urlsafe(32)


class Conversation(models.Model):
    """One person's conversation with one agent, or that of a widget's visitor.

    A visitor is no person: their ids stand here bare, since what they belong to lies above.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="conversations")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="conversations"
    )
    widget_id = models.UUIDField(null=True, blank=True, editable=False)
    visitor_id = models.UUIDField(null=True, blank=True, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, related_name="conversations")
    title = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        default_permissions = ()
        indexes: ClassVar = [
            models.Index(fields=["owner", "workspace", "-changed_at"], name="conversation_newest"),
            models.Index(
                fields=["widget_id", "visitor_id", "-changed_at"],
                condition=models.Q(widget_id__isnull=False),
                name="conversation_of_visitor",
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(owner__isnull=False, widget_id__isnull=True, visitor_id__isnull=True)
                | models.Q(owner__isnull=True, widget_id__isnull=False, visitor_id__isnull=False),
                name="conversation_has_one_asker",
            )
        ]

    def __str__(self) -> str:
        return f"conversation {self.pk}"


class Turn(models.Model):
    """One question and its answer, as a task that the server owns.

    ``parent`` is the turn that the question follows: turns with the same parent are versions of one
    place in the conversation. ``owner_process`` and ``heartbeat_at`` tell whether somebody still works
    on it; a turn whose process is gone is ``interrupted``. ``options`` is what the ask frame chose.
    """

    class Status(models.TextChoices):
        """How far the turn is."""

        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        SUCCEEDED = "succeeded", _("Answered")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")
        WAITING = "waiting", _("Waiting for you")
        INTERRUPTED = "interrupted", _("Interrupted")

    ACTIVE = (Status.QUEUED, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="turns")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="followers")
    number = models.PositiveIntegerField()  # within the conversation, from 1, in the order of asking
    client_id = models.CharField(max_length=64)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.RUNNING)
    question = models.TextField()
    options = models.JSONField(default=dict, blank=True)
    model = models.CharField(max_length=200, blank=True)
    owner_process = models.CharField(max_length=64, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    stop_requested = models.BooleanField(default=False)
    last_seq = models.PositiveIntegerField(default=0)
    error = models.JSONField(null=True, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    suggestions = models.JSONField(null=True, blank=True)  # questions that may follow; null: not asked for yet
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "number"], name="one_turn_a_number"),
            models.UniqueConstraint(fields=["conversation", "client_id"], name="one_turn_a_client_id"),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=models.Q(status="running"),
                name="one_running_turn",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["heartbeat_at"], condition=models.Q(status__in=["queued", "running"]), name="turn_running"
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk}"


class TurnEvent(models.Model):
    """One numbered event of a turn, exactly as the socket sends it (without seq, turn, type, at_ms)."""

    pk = models.CompositePrimaryKey("turn_id", "seq")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveIntegerField()
    type = models.CharField(max_length=30)
    at_ms = models.PositiveIntegerField()
    data = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"event {self.seq} of turn {self.turn_id}"


class Message(models.Model):
    """What a person or the agent said. An answer's ``text`` is the tokens, byte for byte."""

    class Role(models.TextChoices):
        """Who speaks."""

        USER = "user", _("You")
        ASSISTANT = "assistant", _("Answer")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="messages")
    role = models.CharField(max_length=10, choices=Role.choices)
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        default_permissions = ()
        constraints: ClassVar = [models.UniqueConstraint(fields=["turn", "role"], name="one_message_a_role")]
        indexes: ClassVar = [models.Index(fields=["conversation", "created_at"], name="message_in_order")]

    def __str__(self) -> str:
        return f"message {self.pk}"


class Citation(models.Model):
    """One source behind ``[[cN]]`` of an answer, pinned to the text that was read.

    Plain ids rather than keys to knowledge: the source may be deleted or re-indexed, and opening it
    asks the door again each time. ``cited`` says whether the answer's text names it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="citations")
    n = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, default="chunk")
    document_id = models.UUIDField(null=True, blank=True, db_index=True)
    chunk_id = models.UUIDField(null=True, blank=True)
    document = models.CharField(max_length=255, blank=True)
    page = models.PositiveIntegerField(null=True, blank=True)
    heading = models.TextField(blank=True)
    url = models.TextField(blank=True)
    text = models.TextField(blank=True)
    start = models.PositiveIntegerField(null=True, blank=True)
    end = models.PositiveIntegerField(null=True, blank=True)
    cited = models.BooleanField(default=False)

    objects = CitationQuerySet.as_manager()

    class Meta:
        verbose_name = _("citation")
        verbose_name_plural = _("citations")
        default_permissions = ()
        constraints: ClassVar = [models.UniqueConstraint(fields=["message", "n"], name="one_citation_a_number")]

    def __str__(self) -> str:
        return f"citation {self.pk}"


class Attachment(models.Model):
    """A file that was given to a conversation with a question; gone with the conversation.

    A turn's ``options`` name it, so that an edited question and another answer keep theirs. Without a
    conversation it waits to be asked about, for a day.
    """

    class Kind(models.TextChoices):
        """What it is to a model."""

        DOCUMENT = "document", _("Document")
        IMAGE = "image", _("Image")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, null=True, blank=True, related_name="attachments"
    )
    file = models.FileField(upload_to=attachment_path, max_length=200)
    name = models.CharField(max_length=255)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    media_type = models.CharField(max_length=120)
    size_bytes = models.PositiveBigIntegerField()
    text = models.TextField(blank=True)  # Markdown, as the parsers wrote it
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AttachmentQuerySet.as_manager()

    class Meta:
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        default_permissions = ()
        indexes: ClassVar = [
            models.Index(
                fields=["created_at"], condition=models.Q(conversation__isnull=True), name="attachment_unasked"
            ),
        ]

    def __str__(self) -> str:
        return f"attachment {self.pk}"


class Share(models.Model):
    """A link to a conversation as it was up to ``turn``; without the row the link leads nowhere."""

    class Audience(models.TextChoices):
        """Who may follow the link."""

        WORKSPACE = "workspace", _("People of this workspace")
        ANYONE = "anyone", _("Anyone with the link")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.OneToOneField(Conversation, on_delete=models.CASCADE, related_name="share")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="+")
    audience = models.CharField(max_length=10, choices=Audience.choices, default=Audience.WORKSPACE)
    token = models.CharField(max_length=64, unique=True, default=new_token)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = ShareQuerySet.as_manager()

    class Meta:
        verbose_name = _("share link")
        verbose_name_plural = _("share links")
        default_permissions = ()

    def __str__(self) -> str:
        return f"share link {self.pk}"


class Feedback(models.Model):
    """What the asker thought of an answer. ``kept`` asks for the question as a case of a data set."""

    class Reason(models.TextChoices):
        """What was wrong, in one word."""

        WRONG = "wrong", _("It is wrong")
        INCOMPLETE = "incomplete", _("Something is missing")
        SOURCE = "source", _("The source does not say so")
        OFF_TOPIC = "off_topic", _("It does not answer the question")
        OTHER = "other", _("Something else")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    turn = models.OneToOneField(Turn, on_delete=models.CASCADE, related_name="feedback")
    good = models.BooleanField()
    reason = models.CharField(max_length=12, choices=Reason.choices, blank=True)
    comment = models.TextField(blank=True)
    kept = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = FeedbackQuerySet.as_manager()

    class Meta:
        verbose_name = _("feedback")
        verbose_name_plural = _("feedback")
        default_permissions = ()
        indexes: ClassVar = [
            models.Index(fields=["created_at"], condition=models.Q(kept=True), name="feedback_kept"),
        ]

    def __str__(self) -> str:
        return f"feedback {self.pk}"
