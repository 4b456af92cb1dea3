"""The page and the export of the audit log."""

from functools import partial
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.workspaces import audit, permissions
from apps.workspaces.forms import LogFilterForm
from apps.workspaces.models import AuditEvent
from apps.workspaces.pages import PersonRequest, enter

ROWS = 50


@require_safe
@login_required
def show_audit_log(request: PersonRequest, slug: str) -> HttpResponse:
    """Show who did what, the newest first, filtered by words, kind of actor and days."""
    frame, form, events = _asked(request, slug)
    page = Paginator(events.select_related("actor").order_by("-at", "pk"), ROWS).get_page(request.GET.get("page"))
    kept = request.GET.copy()
    kept.pop("page", None)
    context = {**frame, "page": page, "form": form, "query": kept.urlencode(), "section": "people"}
    return render(request, "workspaces/show_audit_log.html", context)


@require_safe
@login_required
def export_audit_log(request: PersonRequest, slug: str) -> HttpResponseBase:
    """Download what the page shows as JSON lines, the oldest first."""
    frame, _form, events = _asked(request, slug)
    place = frame["workspace"]
    audit.record("audit_log.exported", who=request.user, workspace_id=place.pk, target=place, right=frame["role"])
    allowed = partial(permissions.require, "see_audit_log", actor=request.user, workspace=place)
    response = StreamingHttpResponse(audit.as_lines(events, allowed=allowed), content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="audit-{slug}.jsonl"'
    return response


def _asked(request: PersonRequest, slug: str) -> tuple[dict[str, Any], LogFilterForm, Any]:
    frame = enter(request, slug, act="see_audit_log")
    form = LogFilterForm(request.GET)
    mine = AuditEvent.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    return frame, form, mine.chosen(**form.chosen())
