"""What a person asked to be remembered, across conversations."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models import Document
from apps.memory.querysets import AffinityQuerySet, MemoryItemQuerySet, MemorySwitchQuerySet, NoteQuerySet
from apps.workspaces.models import Workspace


class MemoryItem(models.Model):
    """One explicit "remember" statement of one person in one workspace."""

    class Kind(models.TextChoices):
        """What the statement is about."""

        PROFILE = "profile", _("About you")
        INTEREST = "interest", _("Interest")
        FACT = "fact", _("Fact")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memory_items")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    text = models.CharField(max_length=1000)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MemoryItemQuerySet.as_manager()

    class Meta:
        verbose_name = _("memory item")
        verbose_name_plural = _("memory items")
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["user", "workspace", "-created_at"], name="memory_newest")]

    def __str__(self) -> str:
        return f"memory item {self.pk}"


class ConversationNote(models.Model):
    """What a conversation is about, in about 500 characters; helps to understand questions that point back.

    ``conversation`` is a row of an app above, so a bare id; the conversation's erasing erases this too.
    """

    conversation = models.UUIDField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(  # null: a widget's visitor
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    text = models.CharField(max_length=1000)
    documents = ArrayField(
        models.UUIDField(), default=list
    )  # that it was made from: without their right it is not used
    changed_at = models.DateTimeField(auto_now=True)

    objects = NoteQuerySet.as_manager()

    class Meta:
        verbose_name = _("conversation note")
        verbose_name_plural = _("conversation notes")
        default_permissions = ()

    def __str__(self) -> str:
        return f"note of conversation {self.pk}"


class DocumentAffinity(models.Model):
    """How many answers to one person cited a document; counted behind the answer, by code."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    citations = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)

    objects = AffinityQuerySet.as_manager()

    class Meta:
        verbose_name = _("document affinity")
        verbose_name_plural = _("document affinities")
        default_permissions = ()
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "document"], name="one_affinity")]
        indexes: ClassVar = [models.Index(fields=["user", "workspace", "-citations"], name="affinity_most")]

    def __str__(self) -> str:
        return f"affinity {self.pk}"


class MemorySwitch(models.Model):
    """That a person has switched their memory off in a workspace: nothing is read, nothing is written."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    off_since = models.DateTimeField(auto_now_add=True)

    objects = MemorySwitchQuerySet.as_manager()

    class Meta:
        verbose_name = _("memory switch")
        verbose_name_plural = _("memory switches")
        default_permissions = ()
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "workspace"], name="one_memory_switch")]

    def __str__(self) -> str:
        return f"memory switch {self.pk}"
