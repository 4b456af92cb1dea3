"""Agents: instructions, tools and knowledge, as a team configures them."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.agents.querysets import AgentQuerySet, AgentVersionQuerySet, HandoffQuerySet, ToolResultRefQuerySet
from apps.knowledge.models import KnowledgeBase
from apps.models.models import ModelConfig
from apps.workspaces.models import Share, Workspace


class Agent(models.Model):
    """How a team's questions are answered. ``tools`` holds names of the catalogue, nothing executable."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(_("Name"), max_length=100)
    instructions = models.TextField(_("Instructions"), blank=True, max_length=20_000)
    tools = models.JSONField(default=list, blank=True)
    all_knowledge_bases = models.BooleanField(_("Every base that the asker may read"), default=True)
    knowledge_bases = models.ManyToManyField(KnowledgeBase, blank=True, related_name="agents")
    model = models.ForeignKey(ModelConfig, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    configuration = models.JSONField(default=dict, blank=True)  # as ``configuration.Configuration`` has it
    memory = models.BooleanField(_("Uses the asker’s memory"), default=True)
    language = models.CharField(_("Language of answers"), max_length=12, blank=True)  # "": the question's own
    opening_questions = models.JSONField(_("Opening questions"), default=list, blank=True)
    restricted = models.BooleanField(_("Only for people it is shared with"), default=False)
    is_default = models.BooleanField(_("Default of the workspace"), default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        default_permissions = ()
        permissions: ClassVar = [("read_agent", "May ask an agent"), ("manage_agent", "May change an agent")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="one_agent_a_name"),
            models.UniqueConstraint(
                fields=["workspace"], condition=models.Q(is_default=True), name="one_default_agent"
            ),
        ]

    def __str__(self) -> str:
        return f"agent {self.pk}"


class AgentVersion(models.Model):
    """An agent as it was once saved. ``snapshot`` is what ``services.snapshot_of`` makes of it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    snapshot = models.JSONField()
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    saved_at = models.DateTimeField(auto_now_add=True)

    objects = AgentVersionQuerySet.as_manager()

    class Meta:
        verbose_name = _("version of an agent")
        verbose_name_plural = _("versions of agents")
        default_permissions = ()
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["agent", "number"], name="one_version_a_number")]

    def __str__(self) -> str:
        return f"version {self.number} of agent {self.agent_id}"


class AgentShare(Share):
    """A grant on one agent."""

    content_object = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="shares")

    class Meta(Share.Meta):
        abstract = False


class ToolResultRef(models.Model):
    """A tool's whole result that a conversation's messages only point at.

    ``conversation`` and ``turn`` are rows of an app above, so bare ids; the conversation's erasing
    erases these too. ``documents`` are the documents that the text shows: who may not read one of them
    any more does not get the text. ``numbers`` are its sources' numbers in its own turn.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(  # null: a widget's visitor
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    conversation = models.UUIDField(db_index=True)
    turn = models.UUIDField()
    tool = models.CharField(max_length=100)
    text = models.TextField()
    documents = models.JSONField(default=list)
    numbers = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ToolResultRefQuerySet.as_manager()

    class Meta:
        db_table = "tool_result_refs"
        verbose_name = _("stored tool result")
        verbose_name_plural = _("stored tool results")
        default_permissions = ()

    def __str__(self) -> str:
        return f"tool result {self.pk}"


class ConversationHandoff(models.Model):
    """What stands for the turns of a conversation that have left the prompt, up to one answer.

    ``summary_upto_message_id`` is the last answer that is in it: nothing up to there is summarised again.
    Each handoff is a row of its own, so that a branch from an earlier turn finds the one of its own past.
    """

    summary_upto_message_id = models.UUIDField(primary_key=True)
    conversation = models.UUIDField(db_index=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(  # null: a widget's visitor
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    turns = models.PositiveIntegerField()
    parts = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = HandoffQuerySet.as_manager()

    class Meta:
        verbose_name = _("conversation handoff")
        verbose_name_plural = _("conversation handoffs")
        default_permissions = ()

    def __str__(self) -> str:
        return f"handoff up to {self.pk}"
