"""/workspaces/ with their members, departments and API keys."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces import services
from apps.workspaces.models import ApiKey, Department, Membership, Workspace
from apps.workspaces.principals import SCOPES

READ, WRITE = "workspace:read", "workspace:write"


class WorkspaceOut(serializers.ModelSerializer[Workspace]):
    """A workspace that you are in."""

    class Meta:
        model = Workspace
        fields: ClassVar = ["id", "slug", "name", "created_at"]
        read_only_fields = fields


class MemberOut(serializers.ModelSerializer[Membership]):
    """A person of a workspace."""

    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.name")

    class Meta:
        model = Membership
        fields: ClassVar = ["id", "user", "email", "name", "role", "created_at"]
        read_only_fields = fields


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


class ApiKeyOut(serializers.ModelSerializer[ApiKey]):
    """An API key. `key` is there once, in the answer that made it."""

    key = serializers.SerializerMethodField()

    class Meta:
        model = ApiKey
        fields: ClassVar = [
            "id", "workspace", "user", "name", "start", "scopes", "created_at", "expires_at", "revoked_at",
            "last_used_at", "key",
        ]  # fmt: skip
        read_only_fields = fields

    def get_key(self, key: Any) -> str | None:
        """Return the key itself, right after it was made."""
        return getattr(key, "secret", None)


class ApiKeyIn(serializers.Serializer[Any]):
    """A new key in your name. A key cannot give another more than it has."""

    name = serializers.CharField(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=list(SCOPES)), min_length=1, max_length=len(SCOPES)
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class Workspaces(ApiView):
    """The workspaces that you are in; a key is in one."""

    operations = {"GET": Operation(output=WorkspaceOut, many=True, scope="")}

    def on_get(self, request: Request) -> Response:
        """List the workspaces that you are in."""
        return self.page(Workspace.objects.visible_to(self.who))


class OneWorkspace(ApiView):
    """A workspace."""

    operations = {"GET": Operation(output=WorkspaceOut, scope="")}

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """Return a workspace."""
        return self.answer(self.row(workspace_id, Workspace.objects.visible_to(self.who)))


class InOneWorkspace(ApiView):
    """What lies below a workspace."""

    def workspace(self) -> Workspace:
        """Return the workspace that the address names. Raises NotFound."""
        found: Workspace = self.row(self.kwargs["workspace_id"], Workspace.objects.visible_to(self.who))
        return found


class Members(InOneWorkspace):
    """The people of a workspace."""

    operations = {"GET": Operation(output=MemberOut, many=True, scope=READ)}

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """List the people of a workspace."""
        members = Membership.objects.visible_to(self.who).filter(workspace=self.workspace())
        return self.page(members.select_related("user"))


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


class ApiKeys(InOneWorkspace):
    """The keys to a workspace: yours, and all of them where you own or administer it."""

    operations = {
        "GET": Operation(output=ApiKeyOut, many=True, scope=READ),
        "POST": Operation(input=ApiKeyIn, output=ApiKeyOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[ApiKey]:
        return ApiKey.objects.visible_to(self.who).filter(workspace=self.workspace())

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """List keys. None of them is shown again."""
        return self.page(self.rows())

    def on_post(self, request: Request, workspace_id: UUID) -> Response:
        """Make a key. Keep it: nobody can look it up again, and a repeated request does not show it."""
        key, secret = services.create_api_key(workspace=self.workspace(), actor=self.who, **self.taken())
        key.secret = secret  # type: ignore[attr-defined]  # shown in this one answer
        return self.answer(key)


class OneApiKey(InOneWorkspace):
    """A key."""

    operations = {
        "GET": Operation(output=ApiKeyOut, scope=READ),
        "DELETE": Operation(output=ApiKeyOut, scope=WRITE),
    }

    def on_get(self, request: Request, workspace_id: UUID, key_id: UUID) -> Response:
        """Return what is known of a key."""
        return self.answer(self.row(key_id, ApiKey.objects.visible_to(self.who).filter(workspace=self.workspace())))

    def rows(self) -> QuerySet[ApiKey]:
        return ApiKey.objects.editable_by(self.who).filter(workspace=self.workspace())

    def on_delete(self, request: Request, workspace_id: UUID, key_id: UUID) -> Response:
        """Revoke a key. It opens nothing any more, and what it began reads nothing more."""
        services.revoke_api_key(key=self.row(key_id), actor=self.who)
        return self.answer(self.row(key_id))
