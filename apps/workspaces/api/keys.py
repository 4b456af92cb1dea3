"""/workspaces/ID/api-keys/."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.rest.operations import Operation
from apps.workspaces import services
from apps.workspaces.api.workspaces import READ, WRITE, InOneWorkspace
from apps.workspaces.models import ApiKey
from apps.workspaces.principals import SCOPES


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
