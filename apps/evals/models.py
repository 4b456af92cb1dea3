"""Runs of evaluations."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.evals.querysets import EvalRunQuerySet
from apps.workspaces.models import Workspace


class EvalRun(models.Model):
    """One run over one data set, with its metrics. Failed items never leave the mean silently."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20)
    dataset = models.CharField(max_length=200)
    n = models.PositiveIntegerField()
    scored = models.PositiveIntegerField()
    failed = models.PositiveIntegerField()
    metrics = models.JSONField(default=dict)
    configuration = models.JSONField(default=dict)
    seconds = models.FloatField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EvalRunQuerySet.as_manager()

    class Meta:
        verbose_name = _("evaluation run")
        verbose_name_plural = _("evaluation runs")
        default_permissions = ()

    def __str__(self) -> str:
        return f"evaluation run {self.pk}"
