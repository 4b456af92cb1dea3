"""Jobs: an act on many documents, and how far it has come."""

import uuid
from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models.knowledge_bases import KnowledgeBase
from apps.knowledge.querysets import JobQuerySet
from apps.workspaces.models import Workspace


class Job(models.Model):
    """One act on many documents of a base.

    ``payload`` says on what, and never changes. A job first schedules, item after item (``stage``
    "scheduling": ``position`` items of ``total`` are behind it), then waits for what it scheduled
    ("working"). ``result`` counts how each item came through the scheduling; how a document is, only
    the document says. The same ``scope`` cannot be active twice.
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
    progress = models.JSONField(default=dict, blank=True)  # stage -> documents in it, as of the last look
    result = models.JSONField(default=dict, blank=True)  # outcome -> items, and "refused": the first few, why
    error_code = models.CharField(max_length=60, blank=True)
    error_details = models.JSONField(default=dict, blank=True)
    cancel_requested = models.BooleanField(default=False)
    attempt = models.PositiveIntegerField(default=0)
    interruptions = models.PositiveSmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
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

    def claim(self, *, lease: timedelta) -> bool:
        """Take this job for scheduling. True for one worker at a time."""
        now = timezone.now()
        free = Job.objects.filter(pk=self.pk, attempt=self.attempt, status__in=self.ACTIVE)
        free = free.filter(models.Q(lease_until__isnull=True) | models.Q(lease_until__lt=now))
        won = free.update(
            status=self.Status.RUNNING,
            stage="scheduling",
            attempt=self.attempt + 1,
            lease_until=now + lease,
            changed_at=now,
        )
        if won:
            self.refresh_from_db()
        return bool(won)

    def mine(self) -> JobQuerySet:
        """Return this job's row, only while the claim that this object made holds."""
        return Job.objects.filter(pk=self.pk, attempt=self.attempt, status=self.Status.RUNNING)
