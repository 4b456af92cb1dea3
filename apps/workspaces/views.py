"""Pages of workspaces."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.workspaces.models import Workspace


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """List the workspaces one is in."""
    workspaces = Workspace.objects.visible_to(request.user).order_by("name")
    return render(request, "workspaces/home.html", {"workspaces": workspaces})
