"""Grants on single rows: what a share of any kind of row looks like."""

import uuid
from typing import TYPE_CHECKING, ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from guardian.managers import UserObjectPermissionManager
from guardian.models import UserObjectPermissionBase

from apps.workspaces.models.departments import Department
from apps.workspaces.models.people import Role, User
from apps.workspaces.querysets import ShareQuerySet


class Share(UserObjectPermissionBase):
    """A grant on one row to exactly one of: a person, a department, a role and those above it, a widget.

    The role "viewer" is the whole workspace. guardian's own grants are those to persons; the others
    are ours, in the same table. ``content_object`` is a direct foreign key, as all subjects but the
    widget are, so that a grant goes when either end goes. ``permission`` is "read_…" or "manage_…"; a
    grant of any kind includes reading.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(  # type: ignore[assignment]
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    department = models.ForeignKey(Department, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    role = models.CharField(max_length=10, choices=Role.choices, blank=True)
    widget_id = models.UUIDField(null=True, blank=True, db_index=True)
    granted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    if TYPE_CHECKING:
        content_object_id: uuid.UUID

    objects = UserObjectPermissionManager.from_queryset(ShareQuerySet)()  # type: ignore[misc]

    class Meta(UserObjectPermissionBase.Meta):
        abstract = True
        unique_together: ClassVar = []
        verbose_name = _("share")
        verbose_name_plural = _("shares")
        default_permissions = ()
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, department__isnull=True, role="", widget_id__isnull=True)
                | Q(user__isnull=True, department__isnull=False, role="", widget_id__isnull=True)
                | Q(user__isnull=True, department__isnull=True, role__in=["viewer", "member"], widget_id__isnull=True)
                | Q(user__isnull=True, department__isnull=True, role="", widget_id__isnull=False),
                name="%(class)s_one_subject",
            ),
            models.UniqueConstraint(
                fields=["content_object", "user", "department", "role", "widget_id"],
                nulls_distinct=False,
                name="%(class)s_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self._meta.model_name} {self.pk}"

    @property
    def level(self) -> str:
        """What it allows: "read" or "manage"."""
        return str(self.permission.codename).partition("_")[0]
