"""Reads of requests that were carried out."""

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from apps.rest.models import CarriedOut

KEPT = timedelta(hours=24)
ABANDONED = timedelta(minutes=10)  # longer than any request takes: its process is gone


class CarriedOutQuerySet(models.QuerySet["CarriedOut"]):
    """Reads of requests that were carried out."""

    def of(self, caller: str, key: str) -> Self:
        """Keep the request of one caller and key."""
        return self.filter(caller=caller, key=key)

    def abandoned(self) -> Self:
        """Keep requests whose process ended in the middle."""
        return self.filter(status__isnull=True, began_at__lt=timezone.now() - ABANDONED)

    def forgotten(self) -> Self:
        """Keep requests whose repetition is a new request."""
        return self.filter(began_at__lt=timezone.now() - KEPT)
