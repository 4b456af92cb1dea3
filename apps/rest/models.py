"""Requests that were carried out under an Idempotency-Key."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.rest.querysets import CarriedOutQuerySet


class CarriedOut(models.Model):
    """One write, so that its repetition does nothing. Of the answer only the row's id is kept.

    A repetition reads that row again through today's door: nothing that a caller may no longer see,
    and no secret that was shown once, comes out of here.
    """

    id = models.BigAutoField(primary_key=True)
    caller = models.CharField(max_length=80)  # "user:UUID" or "key:UUID"
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)  # of method, path and input
    status = models.PositiveSmallIntegerField(null=True)  # null while it is being carried out
    row = models.CharField(max_length=64, blank=True)  # primary key of what was written
    began_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = CarriedOutQuerySet.as_manager()

    class Meta:
        verbose_name = _("repeatable request")
        verbose_name_plural = _("repeatable requests")
        default_permissions = ("view",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["caller", "key"], name="one_request_an_idempotency_key"),
        ]

    def __str__(self) -> str:
        return f"request {self.pk}"
