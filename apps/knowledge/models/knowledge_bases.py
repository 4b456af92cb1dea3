"""A knowledge base: documents that belong together, with one embedding model and one chunker."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.knowledge.querysets import KnowledgeBaseQuerySet
from apps.workspaces.models import Share, Workspace


class KnowledgeBase(models.Model):
    """Documents that are searched together.

    An open base is readable by its whole workspace; a restricted one by owners, admins and those
    who hold a grant. ``embedding_model`` names the model whose vectors the base holds (see
    ``models.gateway``), empty until the first document is indexed; ``dimensions`` is measured. While
    the base moves to another model, ``next_model`` and ``next_dimensions`` are that one's.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="knowledge_bases")
    name = models.CharField(_("Name"), max_length=100)
    description = models.CharField(_("Description"), max_length=500, blank=True)
    restricted = models.BooleanField(_("Only for people it is shared with"), default=False)
    chunker = models.CharField(max_length=30, default="parent_child")
    chunker_settings = models.JSONField(default=dict, blank=True)
    embedding_model = models.CharField(max_length=200, blank=True)
    dimensions = models.PositiveIntegerField(null=True, blank=True)
    next_model = models.CharField(max_length=200, blank=True)
    next_dimensions = models.PositiveIntegerField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = KnowledgeBaseQuerySet.as_manager()

    class Meta:
        verbose_name = _("knowledge base")
        verbose_name_plural = _("knowledge bases")
        default_permissions = ()
        permissions: ClassVar = [
            ("read_knowledgebase", "May read a knowledge base"),
            ("manage_knowledgebase", "May manage a knowledge base"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "name"],
                condition=models.Q(deleted_at__isnull=True),
                name="one_knowledge_base_a_name",
            ),
        ]

    def __str__(self) -> str:
        return f"knowledge base {self.pk}"


class KnowledgeBaseShare(Share):
    """A grant on one base."""

    content_object = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="shares")

    class Meta(Share.Meta):
        abstract = False
