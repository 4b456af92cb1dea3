"""Pages of workspaces."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.common.errors import NotAllowed
from apps.workspaces import services
from apps.workspaces.forms import WorkspaceForm
from apps.workspaces.models import Workspace
from apps.workspaces.pages import PersonRequest


@require_safe
@login_required
def home(request: PersonRequest) -> HttpResponse:
    """Lead to the workspace visited last, or to the first; without any, offer to make one."""
    slugs = list(Workspace.objects.visible_to(request.user).order_by("created_at").values_list("slug", flat=True))
    if not slugs:
        return render(request, "workspaces/none.html", {"form": WorkspaceForm()})
    last = request.session.get("workspace")
    return redirect("conversations:new-question", last if last in slugs else slugs[0])


@require_POST
@login_required
def create_workspace(request: PersonRequest) -> HttpResponse:
    """Make a workspace of one's own, where sign-up is open."""
    if settings.SIGNUP != "open":
        raise NotAllowed
    form = WorkspaceForm(request.POST)
    if not form.is_valid():
        return render(request, "workspaces/none.html", {"form": form}, status=422)
    workspace = services.create_workspace(name=form.cleaned_data["name"], owner=request.user)
    return redirect("conversations:new-question", workspace.slug)
