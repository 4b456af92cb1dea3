"""/audit-events/."""

from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces import audit, permissions
from apps.workspaces.api.shapes import InWorkspace, entered, within
from apps.workspaces.api.workspaces import READ
from apps.workspaces.models import AuditEvent


class AuditEventOut(serializers.ModelSerializer[AuditEvent]):
    """Who did, saw or asked what, when, from where, under which right. `credential` is a key's or a widget's id."""

    actor = serializers.UUIDField(source="actor_id", allow_null=True)
    credential = serializers.UUIDField(source="credential_id", allow_null=True)
    details = serializers.DictField()

    class Meta:
        model = AuditEvent
        fields: ClassVar = [
            "id", "at", "workspace", "kind", "actor", "credential", "action", "target_kind", "target_id",
            "target_name", "right", "ip", "details",
        ]  # fmt: skip
        read_only_fields = fields


class AuditQuery(InWorkspace):
    """Which events; everything given must hold."""

    action = serializers.CharField(
        max_length=60, required=False, help_text="`document.opened`, or `document.` for all."
    )
    kind = serializers.ChoiceField(choices=AuditEvent.Kind.choices, required=False)
    actor = serializers.UUIDField(required=False)
    target = serializers.UUIDField(required=False)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    q = serializers.CharField(max_length=200, required=False, help_text="In the act, the thing's name or the address.")


class _OfLog(ApiView):
    def chosen(self) -> QuerySet[AuditEvent]:
        """Return the events that the address asks for."""
        asked: dict[str, Any] = {name: value for name, value in self.asked().items() if name != "workspace"}
        return AuditEvent.objects.visible_to(self.who).filter(**within(self)).chosen(**asked)


class AuditEvents(_OfLog):
    """The log of workspaces that you own or administer; nobody can change it."""

    operations = {"GET": Operation(output=AuditEventOut, query=AuditQuery, many=True, order=("-at", "-pk"), scope=READ)}

    def on_get(self, request: Request) -> Response:
        """List events, the newest first."""
        return self.page(self.chosen())


class OneAuditEvent(ApiView):
    """An event."""

    operations = {"GET": Operation(output=AuditEventOut, scope=READ)}

    def on_get(self, request: Request, event_id: UUID) -> Response:
        """Return an event."""
        return self.answer(self.row(event_id, AuditEvent.objects.visible_to(self.who)))


class ExportAuditEvents(_OfLog):
    """The log as a file."""

    operations = {"GET": Operation(query=AuditQuery, media_types=("application/x-ndjson",), scope=READ)}

    def on_get(self, request: Request) -> HttpResponseBase:
        """Return the events of one workspace as JSON lines, the oldest first; the log says who took them."""
        workspace = entered(self, self.asked().get("workspace"))
        allowed = partial(permissions.require, "see_audit_log", actor=self.who, workspace=workspace)
        allowed()
        audit.record("audit_log.exported", who=self.who, workspace_id=workspace.pk, target=workspace)
        lines = audit.as_lines(self.chosen().filter(workspace=workspace), allowed=allowed)
        response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
        response["Content-Disposition"] = f'attachment; filename="audit-{workspace.slug}.jsonl"'
        return response
