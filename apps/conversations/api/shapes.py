"""What conversations look like in JSON."""

from typing import Any, ClassVar

from rest_framework import serializers

from apps.conversations import frames
from apps.conversations.models import Attachment, Citation, Conversation, Feedback, Message, Turn
from apps.workspaces.api.shapes import InWorkspace


class ConversationOut(serializers.ModelSerializer[Conversation]):
    """A conversation of yours with an agent."""

    class Meta:
        model = Conversation
        fields: ClassVar = ["id", "workspace", "agent", "title", "created_at", "changed_at", "pinned_at", "archived_at"]
        read_only_fields = fields


class ConversationIn(InWorkspace):
    """A new conversation; its title comes with the first question."""

    agent = serializers.UUIDField(required=False, allow_null=True, help_text="Else the workspace's default agent.")


class ConversationChange(serializers.Serializer[Any]):
    """What changes."""

    title = serializers.CharField(max_length=200, required=False)
    pinned = serializers.BooleanField(required=False)
    archived = serializers.BooleanField(required=False)


class TurnOut(serializers.ModelSerializer[Turn]):
    """A question and its answer. `answer` grows while `status` is `running`; `last_seq` is set at its end."""

    error = serializers.DictField(allow_null=True, help_text="Why there is no whole answer.")
    usage = serializers.DictField()
    answer = serializers.CharField(allow_null=True, help_text="Markdown, with a marker `[[cN]]` behind each fact.")

    class Meta:
        model = Turn
        fields: ClassVar = [
            "id", "conversation", "number", "parent", "client_id", "status", "question", "answer", "model", "error",
            "usage", "last_seq", "started_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields


class TurnIn(serializers.Serializer[Any]):
    """A question. `regenerate` names a turn whose question is to be answered again."""

    text = serializers.CharField(
        max_length=frames.MAX_QUESTION, required=False, allow_blank=True, trim_whitespace=False
    )
    client_id = serializers.CharField(
        max_length=64, required=False, help_text="Repeated, it gives the turn that it began; else one is made."
    )
    knowledge_bases = serializers.ListField(child=serializers.UUIDField(), max_length=100, required=False)
    attachments = serializers.ListField(
        child=serializers.UUIDField(), max_length=frames.MAX_ATTACHMENTS, required=False
    )
    web = serializers.BooleanField(required=False)
    graph = serializers.BooleanField(required=False)
    language = serializers.RegexField(
        r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$", required=False, help_text="Of the answer, such as `en`."
    )
    parent = serializers.UUIDField(  # type: ignore[assignment]  # DRF takes declared fields off the class
        required=False, help_text="The turn that it follows, if not the newest."
    )
    regenerate = serializers.UUIDField(required=False)
    model = serializers.UUIDField(required=False)


class EventsQuery(serializers.Serializer[Any]):
    """From which event on."""

    after = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=500)


class EventsOut(serializers.Serializer[Any]):
    """Events of a turn, as the websocket sends them (docs/websocket.md)."""

    status = serializers.ChoiceField(choices=Turn.Status.choices)
    last_seq = serializers.IntegerField(help_text="Of the last event here; ask for what comes after it.")
    events = serializers.ListField(child=serializers.DictField())


class CitationOut(serializers.ModelSerializer[Citation]):
    """A source of an answer. Its text is empty where its document may not be read any more."""

    text = serializers.SerializerMethodField()
    heading = serializers.SerializerMethodField()

    class Meta:
        model = Citation
        fields: ClassVar = [
            "id", "n", "kind", "document_id", "chunk_id", "document", "page", "heading", "url", "text", "start", "end",
            "cited",
        ]  # fmt: skip
        read_only_fields = fields

    def get_text(self, citation: Any) -> str:
        """Return the text that was read, while it may be read."""
        return citation.text if citation.readable else ""

    def get_heading(self, citation: Any) -> str:
        """Return where it stands, while it may be read."""
        return citation.heading if citation.readable else ""


class FeedbackOut(serializers.ModelSerializer[Feedback]):
    """What you think of an answer."""

    reason = serializers.CharField(help_text="Empty where the answer is good, or nothing was said.")

    class Meta:
        model = Feedback
        fields: ClassVar = ["id", "turn", "good", "reason", "comment", "kept", "created_at", "changed_at"]
        read_only_fields = fields


class FeedbackIn(serializers.Serializer[Any]):
    """Whether an answer is good, and why not. `kept` offers it as a case of a data set."""

    good = serializers.BooleanField()
    reason = serializers.ChoiceField(choices=Feedback.Reason.choices, required=False)
    comment = serializers.CharField(max_length=4000, required=False, allow_blank=True)
    kept = serializers.BooleanField(required=False)


class MessageOut(serializers.ModelSerializer[Message]):
    """What you or the agent said."""

    class Meta:
        model = Message
        fields: ClassVar = ["id", "conversation", "turn", "role", "text", "created_at"]
        read_only_fields = fields


class MessageQuery(serializers.Serializer[Any]):
    """Which messages."""

    conversation = serializers.UUIDField(required=False)


class AttachmentOut(serializers.ModelSerializer[Attachment]):
    """A file that comes with a question."""

    class Meta:
        model = Attachment
        fields: ClassVar = [
            "id", "workspace", "conversation", "name", "kind", "media_type", "size_bytes", "created_at",
        ]  # fmt: skip
        read_only_fields = fields


class AttachmentIn(InWorkspace):
    """A file."""

    file = serializers.FileField(allow_empty_file=True, max_length=1024)
