"""What searches go by besides the chunks: a base's profile, its passages' tokens, a workspace's synonyms."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models.chunks import Chunk
from apps.knowledge.models.documents import Document
from apps.knowledge.models.knowledge_bases import KnowledgeBase
from apps.knowledge.querysets import SynonymsQuerySet
from apps.workspaces.models import Workspace


class SearchProfile(models.Model):
    """How a base is searched, by everybody; ``chosen`` holds what of a ``Profile`` is not the default."""

    knowledge_base = models.OneToOneField(
        KnowledgeBase, on_delete=models.CASCADE, primary_key=True, related_name="search_profile"
    )
    chosen = models.JSONField(default=dict)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("search profile")
        verbose_name_plural = _("search profiles")
        default_permissions = ()

    def __str__(self) -> str:
        return f"search profile of {self.knowledge_base_id}"


class PassageTokens(models.Model):
    """The signs of a passage's token vectors, for the built-in reranker: 48 bytes a token.

    Random bits cannot be compressed, so the column's storage is external (migration), which spares
    PostgreSQL the attempt.
    """

    chunk = models.OneToOneField(
        Chunk, on_delete=models.CASCADE, primary_key=True, db_constraint=False, related_name="tokens"
    )
    document = models.ForeignKey(Document, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    signs = models.BinaryField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"tokens of {self.pk}"


class Synonyms(models.Model):
    """Words that mean the same to a workspace: a question with one of them may be asked with the others."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    words = ArrayField(models.CharField(max_length=60))
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SynonymsQuerySet.as_manager()

    class Meta:
        verbose_name = _("synonyms")
        verbose_name_plural = _("synonyms")
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["workspace", "created_at"], name="synonyms_of_workspace")]

    def __str__(self) -> str:
        return f"synonyms {self.pk}"
