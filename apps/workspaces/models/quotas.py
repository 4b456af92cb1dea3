"""Quotas: how much of what a workspace and each of its people may use."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.workspaces.models.people import User, Workspace
from apps.workspaces.querysets import QuotaQuerySet


class Quota(models.Model):
    """A counter of one kind of use, of a workspace or of one person in it, and its limit.

    ``limit`` None: the server's default. ``began_at`` is when the running period began; what has no
    period (storage, documents) counts what is there. Counting is one conditional UPDATE, see
    ``services.quotas``.
    """

    class Kind(models.TextChoices):
        """What is counted."""

        STORAGE = "storage", _("Storage")
        DOCUMENTS = "documents", _("Documents")
        UPLOADS = "uploads", _("Uploads an hour")
        TURNS = "turns", _("Questions a day")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="quotas")
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    kind = models.CharField(_("Kind"), max_length=10, choices=Kind.choices)
    used = models.BigIntegerField(default=0)
    limit = models.PositiveBigIntegerField(null=True, blank=True)
    began_at = models.DateTimeField(auto_now_add=True)

    objects = QuotaQuerySet.as_manager()

    class Meta:
        verbose_name = _("quota")
        verbose_name_plural = _("quotas")
        default_permissions = ("view", "change")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "user", "kind"], nulls_distinct=False, name="one_quota_a_kind"
            ),
            models.CheckConstraint(condition=Q(used__gte=0), name="quota_not_below_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} quota {self.pk}"
