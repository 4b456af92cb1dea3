"""Folders of a knowledge base: a tree, in which a document is in one folder or at the top."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models.knowledge_bases import KnowledgeBase
from apps.knowledge.querysets import FolderQuerySet, MetadataFieldQuerySet
from apps.workspaces.models import Share, Workspace


class Folder(models.Model):
    """A folder. ``lineage`` holds the ids from the top down to its own.

    Whatever is below a folder is what has its id in the lineage: one index look-up, no recursion.
    """

    DEEPEST = 20

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="folders")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    name = models.CharField(_("Name"), max_length=200)
    lineage = ArrayField(models.UUIDField())
    restricted = models.BooleanField(_("Only for people it is shared with"), default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = FolderQuerySet.as_manager()

    class Meta:
        verbose_name = _("folder")
        verbose_name_plural = _("folders")
        default_permissions = ()
        permissions: ClassVar = [("read_folder", "May read a restricted folder")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["knowledge_base", "parent", "name"],
                nulls_distinct=False,
                condition=models.Q(deleted_at__isnull=True),
                name="one_folder_a_name",
            ),
        ]
        indexes: ClassVar = [
            GinIndex(fields=["lineage"], name="folder_lineage"),
            models.Index(fields=["workspace"], condition=models.Q(restricted=True), name="folder_restricted"),
        ]

    def __str__(self) -> str:
        return f"folder {self.pk}"

    @property
    def is_shut(self) -> bool:
        """Whether it or one above it is restricted."""
        return self.restricted or Folder.objects.filter(pk__in=self.lineage, restricted=True).exists()


class FolderShare(Share):
    """A grant on one restricted folder, for what is below it. It opens nothing to those who may not read the base."""

    content_object = models.ForeignKey(Folder, on_delete=models.CASCADE, related_name="shares")

    class Meta(Share.Meta):
        abstract = False


class MetadataField(models.Model):
    """A fact that a knowledge base keeps of each of its documents, with its type.

    The values are in ``Document.attributes`` under ``key``: text, a number, true or false, a date as
    ISO 8601, or one of ``choices``.
    """

    class Type(models.TextChoices):
        """What a value may be."""

        TEXT = "text", _("Plain text")
        NUMBER = "number", _("Number")
        DATE = "date", _("Date")
        BOOLEAN = "boolean", _("Yes or no")
        CHOICE = "choice", _("One of a list")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="metadata_fields")
    key = models.SlugField(_("Name"), max_length=50, allow_unicode=True)
    type = models.CharField(_("Type"), max_length=10, choices=Type.choices, default=Type.TEXT)
    choices = ArrayField(models.CharField(max_length=100), default=list, blank=True, verbose_name=_("Choices"))
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MetadataFieldQuerySet.as_manager()

    class Meta:
        verbose_name = _("metadata field")
        verbose_name_plural = _("metadata fields")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["knowledge_base", "key"], name="one_metadata_field_a_key"),
        ]

    def __str__(self) -> str:
        return f"metadata field {self.pk}"
