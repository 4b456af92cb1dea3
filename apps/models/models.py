"""Configured models: which endpoint, which name, which key."""

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.fields import EncryptedField
from apps.models.querysets import ModelConfigQuerySet
from apps.workspaces.models import Workspace


class Kind(models.TextChoices):
    """What a model is for."""

    CHAT = "chat", _("Chat")
    EMBEDDING = "embedding", _("Embedding")
    RERANK = "rerank", _("Rerank")
    VISION = "vision", _("Vision")
    SPEECH = "speech", _("Speech")


class ModelConfig(models.Model):
    """One model at one OpenAI-compatible endpoint; of a workspace, or of the operator (no workspace)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, blank=True, related_name="model_configs"
    )
    kind = models.CharField(_("Kind"), max_length=10, choices=Kind.choices)
    name = models.CharField(_("Name"), max_length=200)  # as the endpoint knows it
    base_url = models.URLField(_("Address"), max_length=500)
    api_key = EncryptedField(_("Key"), null=True, blank=True)
    configuration = models.JSONField(default=dict, blank=True)  # capabilities and limits, see gateway
    is_default = models.BooleanField(_("Default of its kind"), default=False)
    enabled = models.BooleanField(_("In use"), default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ModelConfigQuerySet.as_manager()

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "kind"],
                condition=models.Q(is_default=True),
                nulls_distinct=False,
                name="one_default_a_kind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} model {self.pk}"
