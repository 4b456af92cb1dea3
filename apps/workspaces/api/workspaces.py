"""/workspaces/ and what a workspace may use."""

from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.common.errors import NotAllowed
from apps.rest.callers import credential_of
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces import services
from apps.workspaces.models import Quota, Workspace
from apps.workspaces.services import quotas

READ, WRITE = "workspace:read", "workspace:write"
DAYS: dict[str, Any] = {"max_value": 36_500, "required": False, "allow_null": True}


class WorkspaceOut(serializers.ModelSerializer[Workspace]):
    """A workspace that you are in; null days: for ever."""

    class Meta:
        model = Workspace
        fields: ClassVar = ["id", "slug", "name", "keep_conversations_days", "keep_audit_days", "created_at"]
        read_only_fields = fields


class WorkspaceIn(serializers.Serializer[Any]):
    """A new workspace of yours."""

    name = serializers.CharField(max_length=100)


class WorkspaceChange(serializers.Serializer[Any]):
    """What changes."""

    name = serializers.CharField(max_length=100, required=False)
    keep_conversations_days = serializers.IntegerField(min_value=1, **DAYS)
    keep_audit_days = serializers.IntegerField(min_value=30, **DAYS)


class QuotaOut(serializers.ModelSerializer[Quota]):
    """What was used and what may be; without `user` that of the whole workspace. No limit: null."""

    limit = serializers.SerializerMethodField(help_text="The one that counts: its own, else the server's.")
    own_limit = serializers.IntegerField(source="limit", allow_null=True, help_text="Set for it alone.")

    class Meta:
        model = Quota
        fields: ClassVar = ["id", "workspace", "user", "kind", "used", "limit", "own_limit", "began_at"]
        read_only_fields = fields

    def get_limit(self, quota: Any) -> int | None:
        """Return the limit that counts."""
        return quotas.limit_of(quota)


class QuotaIn(serializers.Serializer[Any]):
    """How much one person may use; null: as much as the server lets everybody."""

    user = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=Quota.Kind.choices)
    limit = serializers.IntegerField(min_value=0, max_value=2**53, allow_null=True)


class Workspaces(ApiView):
    """The workspaces that you are in; a key is in one."""

    operations = {
        "GET": Operation(output=WorkspaceOut, many=True, scope=""),
        "POST": Operation(input=WorkspaceIn, output=WorkspaceOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[Workspace]:
        return Workspace.objects.visible_to(self.who)

    def on_get(self, request: Request) -> Response:
        """List the workspaces that you are in."""
        return self.page(self.rows())

    def on_post(self, request: Request) -> Response:
        """Make a workspace that you own, where sign-up is open.

        A key is refused: it opens one workspace, and would not open this.
        """
        given = self.taken()
        if credential_of(request) is not None or settings.SIGNUP != "open":
            raise NotAllowed
        return self.answer(services.create_workspace(name=given["name"], owner=self.who))


class OneWorkspace(ApiView):
    """A workspace."""

    operations = {
        "GET": Operation(output=WorkspaceOut, scope=""),
        "PATCH": Operation(input=WorkspaceChange, output=WorkspaceOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def rows(self) -> QuerySet[Workspace]:
        return Workspace.objects.visible_to(self.who)

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """Return a workspace."""
        return self.answer(self.row(workspace_id))

    def on_patch(self, request: Request, workspace_id: UUID) -> Response:
        """Change the name of a workspace that you own or administer, or how long things are kept."""
        services.change_workspace(workspace=self.row(workspace_id), actor=self.who, **self.taken())
        return self.answer(self.row(workspace_id))

    def on_delete(self, request: Request, workspace_id: UUID) -> Response:
        """Delete a workspace that you own, with everything in it. It is shut to everybody at once."""
        services.delete_workspace(workspace=self.row(workspace_id), actor=self.who)
        return self.done()


class InOneWorkspace(ApiView):
    """What lies below a workspace."""

    def workspace(self) -> Workspace:
        """Return the workspace that the address names. Raises NotFound."""
        found: Workspace = self.row(self.kwargs["workspace_id"], Workspace.objects.visible_to(self.who))
        return found


class Quotas(InOneWorkspace):
    """What was used, and what may be."""

    operations = {
        "GET": Operation(output=QuotaOut, many=True, order=("-began_at", "-pk"), scope=READ),
        "POST": Operation(input=QuotaIn, output=QuotaOut, scope=WRITE),
    }

    def rows(self) -> QuerySet[Quota]:
        return Quota.objects.visible_to(self.who).filter(workspace=self.workspace())

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """List your own use, and everybody's in a workspace that you own or administer."""
        return self.page(self.rows())

    def on_post(self, request: Request, workspace_id: UUID) -> Response:
        """Set how much a person may use, in a workspace that you own or administer."""
        workspace, given = self.workspace(), self.taken()
        quota = quotas.set_limit_of(
            workspace=workspace, user_id=given["user"], kind=given["kind"], limit=given["limit"], actor=self.who
        )
        return self.answer(quota)
