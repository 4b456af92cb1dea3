"""Departments: a tree of groups of a workspace's people, for sharing."""

import uuid
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.workspaces.models.people import Membership, Workspace
from apps.workspaces.querysets import DepartmentMemberQuerySet, DepartmentQuerySet


class Department(models.Model):
    """A group of people. What is shared with it is shared with all groups below it too.

    ``lineage`` holds its own id and those of all above it, the nearest first, so that a door needs
    no recursion; only ``services.departments`` writes it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="departments")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    name = models.CharField(_("Name"), max_length=100)
    lineage = ArrayField(models.UUIDField(), default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DepartmentQuerySet.as_manager()

    class Meta:
        verbose_name = _("department")
        verbose_name_plural = _("departments")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "parent", "name"], nulls_distinct=False, name="one_department_a_name"
            ),
        ]
        indexes: ClassVar = [GinIndex(fields=["lineage"], name="department_lineage")]

    def __str__(self) -> str:
        return f"department {self.pk}"


class DepartmentMember(models.Model):
    """A member of a department. It hangs on the membership of the workspace, and ends with it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    department = models.ForeignKey(Department, on_delete=models.CASCADE, related_name="members")
    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="departments")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DepartmentMemberQuerySet.as_manager()

    class Meta:
        verbose_name = _("department member")
        verbose_name_plural = _("department members")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["department", "membership"], name="once_in_a_department"),
        ]

    def __str__(self) -> str:
        return f"department member {self.pk}"
