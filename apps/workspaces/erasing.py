"""Erasing workspaces and people for good: each app erases what is its own, then the row itself goes.

A deleted workspace is closed to everybody in the moment it is deleted; what is in it goes in the
background, a piece at a time, as often as it takes. Apps above register how in ``AppConfig.ready``.
"""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.common.database import set_local
from apps.common.registry import Registry
from apps.workspaces import audit
from apps.workspaces.models import AuditEvent, User, Workspace

# Given an id, erase some of it; True once nothing is left that would have to go before the row.
Eraser = Callable[[UUID], bool]
OF_WORKSPACES = Registry[Eraser]("eraser of workspaces", {})
OF_PEOPLE = Registry[Eraser]("eraser of people", {})


def sweep() -> dict[str, int]:
    """Erase what is deleted, and what is older than it is to be kept. Run every minute."""
    return {"workspaces": erase_workspaces(), "people": erase_people(), "audit": expire_audit_log()}


def erase_workspaces() -> int:
    """Go on with each deleted workspace; return how many are gone."""
    gone = 0
    for pk in Workspace.objects.filter(deleted_at__isnull=False).values_list("pk", flat=True):
        done = [OF_WORKSPACES.get(name)(pk) for name in OF_WORKSPACES]
        if all(done):
            with transaction.atomic():
                audit.forget_workspace(pk)
                Workspace.objects.filter(pk=pk).delete()
            gone += 1
    return gone


def erase_people() -> int:
    """Go on with each deleted person; return how many are gone."""
    gone = 0
    for pk in User.objects.filter(deleted_at__isnull=False).values_list("pk", flat=True):
        done = [OF_PEOPLE.get(name)(pk) for name in OF_PEOPLE]
        if all(done):
            User.objects.filter(pk=pk).delete()
            gone += 1
    return gone


def expire_audit_log() -> int:
    """Erase entries that are older than their workspace keeps them."""
    count = 0
    for place in Workspace.objects.filter(keep_audit_days__isnull=False):
        old = AuditEvent.objects.filter(
            workspace=place, at__lt=timezone.now() - timedelta(days=place.keep_audit_days or 0)
        )
        with transaction.atomic():
            set_local("knowsphere.erasing", str(place.pk))
            count += old.delete()[0]
            set_local("knowsphere.erasing", "")
    return count
