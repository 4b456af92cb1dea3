"""Jobs: an act on many documents, and how far it has come."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models.knowledge_bases import KnowledgeBase
from apps.knowledge.querysets import JobQuerySet
from apps.workspaces.models import Workspace


class Job(models.Model):
    """One act on many documents of a base.

    ``payload`` says on what, and never changes. A job first schedules, some documents at a time
    (``stage`` "scheduling": ``position`` of ``total`` are behind it, moved on in the transaction that
    schedules them, so that a killed worker neither loses nor repeats any), then waits for what it
    scheduled ("working"). ``result`` counts how the documents came through the scheduling; how a
    document is, only the document says. The same ``scope`` cannot be active twice.
    """

    class Kind(models.TextChoices):
        """What is done."""

        ADD = "add", _("Add files")
        PARSE = "parse", _("Read again")
        INDEX = "index", _("Index")
        DELETE = "delete", _("Delete")
        MOVE = "move", _("Move")
        TAG = "tag", _("Tag")
        CANCEL = "cancel", _("Cancel")
        RETRY = "retry", _("Try again")
        EMBED = "embed", _("Change the embedding model")

    class Status(models.TextChoices):
        """How far the job is."""

        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Running")
        SUCCEEDED = "succeeded", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    ACTIVE = (Status.QUEUED, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="jobs")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    scope = models.CharField(max_length=200)
    payload = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    stage = models.CharField(max_length=20, blank=True)
    position = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    progress = models.JSONField(default=dict, blank=True)  # at the end: state -> documents in it
    result = models.JSONField(default=dict, blank=True)  # "scheduled", "skipped", … -> documents
    error_code = models.CharField(max_length=60, blank=True)
    error_details = models.JSONField(default=dict, blank=True)
    cancel_requested = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)  # when its maker was told of its end

    objects = JobQuerySet.as_manager()

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["knowledge_base", "scope"],
                condition=models.Q(status__in=["queued", "running"]),
                name="one_active_job_a_scope",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["knowledge_base", "-created_at"], name="job_newest"),
            models.Index(
                fields=["changed_at"], condition=models.Q(status__in=["queued", "running"]), name="job_active"
            ),
            models.Index(
                fields=["created_by"],
                condition=models.Q(finished_at__isnull=False, seen_at__isnull=True),
                name="job_untold",
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.pk}"

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.status in self.ACTIVE
