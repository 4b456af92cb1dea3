"""The page and the export of the audit log."""

from collections.abc import Iterator
from typing import Any

import orjson
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.workspaces import audit, permissions
from apps.workspaces.models import AuditEvent
from apps.workspaces.pages import PersonRequest, enter

ROWS = 50
COLUMNS = (
    *("id", "at", "kind", "actor_id", "credential_id", "action"),
    *("target_kind", "target_id", "target_name", "right", "ip", "details"),
)


@require_safe
@login_required
def show_audit_log(request: PersonRequest, slug: str) -> HttpResponse:
    """Show who did what, the newest first, filtered by act and person."""
    frame = enter(request, slug)
    permissions.require("see_audit_log", actor=request.user, workspace=frame["workspace"])
    q = request.GET.get("q", "").strip()
    events = _events(request, frame).matching(q).select_related("actor").order_by("-at", "pk")
    page = Paginator(events, ROWS).get_page(request.GET.get("page"))
    return render(request, "workspaces/show_audit_log.html", {**frame, "page": page, "q": q, "section": "people"})


@require_safe
@login_required
def export_audit_log(request: PersonRequest, slug: str) -> HttpResponseBase:
    """Download the log as JSON lines, the oldest first."""
    frame = enter(request, slug)
    permissions.require("see_audit_log", actor=request.user, workspace=frame["workspace"])
    audit.record("audit_log.exported", who=request.user, workspace_id=frame["workspace"].pk, right=frame["role"])
    events = _events(request, frame).order_by("at", "pk").values(*COLUMNS)
    response = StreamingHttpResponse(_lines(events), content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="audit-{slug}.jsonl"'
    return response


def _events(request: PersonRequest, frame: dict[str, Any]) -> Any:
    return AuditEvent.objects.visible_to(request.user).filter(workspace=frame["workspace"])


def _lines(events: Any) -> Iterator[bytes]:
    for event in events.iterator(chunk_size=1000):
        yield orjson.dumps(event, default=str, option=orjson.OPT_APPEND_NEWLINE)
