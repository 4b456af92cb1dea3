"""/workspaces/ID/departments/."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.rest.operations import Operation
from apps.workspaces import services
from apps.workspaces.api.workspaces import READ, WRITE, InOneWorkspace
from apps.workspaces.models import Department


class DepartmentOut(serializers.ModelSerializer[Department]):
    """A department; what is shared with it is shared with all below it too."""

    class Meta:
        model = Department
        fields: ClassVar = ["id", "workspace", "parent", "name", "created_at"]
        read_only_fields = fields


class DepartmentIn(serializers.Serializer[Any]):
    """A new department, below another or at the top."""

    name = serializers.CharField(max_length=100)
    parent = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]


class DepartmentChange(serializers.Serializer[Any]):
    """What changes. `members` are exactly the people that are in it then."""

    name = serializers.CharField(max_length=100, required=False)
    parent = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    members = serializers.ListField(child=serializers.UUIDField(), max_length=1000, required=False)


class Departments(InOneWorkspace):
    """The departments of a workspace."""

    operations = {
        "GET": Operation(output=DepartmentOut, many=True, scope=READ),
        "POST": Operation(input=DepartmentIn, output=DepartmentOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[Department]:
        return Department.objects.visible_to(self.who).filter(workspace=self.workspace())

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """List the departments of a workspace."""
        return self.page(self.rows())

    def on_post(self, request: Request, workspace_id: UUID) -> Response:
        """Make a department, in a workspace that you own or administer."""
        workspace, given = self.workspace(), self.taken()
        parent = self.row(given["parent"]) if given.get("parent") else None
        made = services.create_department(workspace=workspace, name=given["name"], parent=parent, actor=self.who)
        return self.answer(made)


class OneDepartment(InOneWorkspace):
    """A department."""

    operations = {
        "GET": Operation(output=DepartmentOut, scope=READ),
        "PATCH": Operation(input=DepartmentChange, output=DepartmentOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def rows(self) -> QuerySet[Department]:
        return Department.objects.visible_to(self.who).filter(workspace=self.workspace())

    def editable(self, department_id: UUID) -> Department:
        """Return a department that the caller may change. Raises NotFound."""
        mine = Department.objects.editable_by(self.who).filter(workspace=self.workspace())
        found: Department = self.row(department_id, mine)
        return found

    def on_get(self, request: Request, workspace_id: UUID, department_id: UUID) -> Response:
        """Return a department."""
        return self.answer(self.row(department_id))

    def on_patch(self, request: Request, workspace_id: UUID, department_id: UUID) -> Response:
        """Rename or move a department, or say who is in it."""
        department, given = self.editable(department_id), self.taken()
        if "name" in given:
            services.rename_department(department=department, name=given["name"], actor=self.who)
        if "parent" in given:
            parent = self.row(given["parent"]) if given["parent"] else None
            services.move_department(department=department, parent=parent, actor=self.who)
        if "members" in given:
            services.set_department_members(department=department, user_ids=given["members"], actor=self.who)
        return self.answer(self.row(department_id))

    def on_delete(self, request: Request, workspace_id: UUID, department_id: UUID) -> Response:
        """Delete a department, all below it, and what was shared with them. The people stay."""
        services.delete_department(department=self.editable(department_id), actor=self.who)
        return self.done()
