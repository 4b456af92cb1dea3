"""Pages of a workspace's settings, limits, export and end."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.workspaces import exporting, permissions, services
from apps.workspaces.accounts import ask_again
from apps.workspaces.forms import DeleteWorkspaceForm, LimitForm, SettingsForm, people_of
from apps.workspaces.models import Membership, Quota
from apps.workspaces.pages import PersonRequest, enter
from apps.workspaces.services import quotas

ROWS = 50


@require_safe
@login_required
def show_settings(request: PersonRequest, slug: str) -> HttpResponse:
    """Show what an owner or admin may change."""
    return render(request, "workspaces/show_settings.html", _settings(_managed(request, slug)))


@require_POST
@login_required
def change_settings(request: PersonRequest, slug: str) -> HttpResponse:
    """Change the name, and how long things are kept."""
    frame = _managed(request, slug)
    form = SettingsForm(request.POST, instance=frame["workspace"])
    if not form.is_valid():
        return render(request, "workspaces/show_settings.html", _settings(frame, form=form), status=422)
    services.change_workspace(workspace=frame["workspace"], actor=request.user, **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("workspaces:show-settings", slug)


@require_POST
@login_required
def delete_workspace(request: PersonRequest, slug: str) -> HttpResponse:
    """Close a workspace to everybody, and erase it."""
    frame = enter(request, slug)
    permissions.require("own_workspace", actor=request.user, workspace=frame["workspace"])
    form = DeleteWorkspaceForm(request.POST, workspace=frame["workspace"])
    if not form.is_valid():
        return render(request, "workspaces/show_settings.html", _settings(frame, delete_form=form), status=422)
    ask_again(request)
    services.delete_workspace(workspace=frame["workspace"], actor=request.user)
    messages.success(request, _("“%(name)s” was closed and is being erased.") % {"name": frame["workspace"].name})
    return redirect("workspaces:home")


@require_safe
@login_required
def export_workspace(request: PersonRequest, slug: str) -> HttpResponseBase:
    """Download all of a workspace that one may read."""
    frame = _managed(request, slug)
    parts = exporting.archive(workspace=frame["workspace"], actor=request.user)
    response = StreamingHttpResponse(parts, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{slug}.zip"'
    return response


@require_safe
@login_required
def show_limits(request: PersonRequest, slug: str) -> HttpResponse:
    """Show what was used and what may be: one's own, and for owners and admins everybody's."""
    frame = enter(request, slug)
    return render(request, "workspaces/show_limits.html", _limits(request, frame))


@require_POST
@login_required
def set_limit(request: PersonRequest, slug: str) -> HttpResponse:
    """Set how much a person may use."""
    frame = _managed(request, slug)
    form = LimitForm(request.POST, members=_people(request, frame))
    if not form.is_valid():
        return render(request, "workspaces/show_limits.html", _limits(request, frame, form=form), status=422)
    given = form.cleaned_data
    quotas.set_limit_of(
        workspace=frame["workspace"],
        user_id=UUID(given["person"]),
        kind=given["kind"],
        limit=given["limit"],
        actor=request.user,
    )
    return redirect("workspaces:show-limits", slug)


def _managed(request: PersonRequest, slug: str) -> dict[str, Any]:
    return enter(request, slug, act="manage_people")


def _settings(frame: dict[str, Any], form: Any = None, delete_form: Any = None) -> dict[str, Any]:
    workspace = frame["workspace"]
    forms = {
        "form": form or SettingsForm(instance=workspace),
        "delete_form": delete_form or DeleteWorkspaceForm(workspace=workspace),
    }
    return {**frame, **forms, "section": "people"}


def _limits(request: PersonRequest, frame: dict[str, Any], form: LimitForm | None = None) -> dict[str, Any]:
    mine = Quota.objects.visible_to(request.user).filter(workspace=frame["workspace"]).select_related("user")
    page = Paginator(mine.order_by("user__email", "kind"), ROWS).get_page(request.GET.get("page"))
    rows = [(quota, quotas.limit_of(quota)) for quota in page.object_list]
    if form is None and permissions.allows("manage_people", frame["role"]):
        form = LimitForm(members=_people(request, frame))
    return {**frame, "page": page, "rows": rows, "form": form, "section": "people"}


def _people(request: PersonRequest, frame: dict[str, Any]) -> list[Membership]:
    return people_of(Membership.objects.visible_to(request.user).filter(workspace=frame["workspace"]))
