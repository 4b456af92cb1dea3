"""What the pages of a workspace have in common."""

from typing import Any

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from apps.common.errors import NotFound
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import role_of


class PersonRequest(HttpRequest):
    """A request behind ``login_required``, as middleware leaves it."""

    user: User
    htmx: HtmxDetails


def enter(request: PersonRequest, slug: str) -> dict[str, Any]:
    """Return what the frame of a workspace's page shows, and remember it as the last one visited.

    Raises:
        NotFound: there is no such workspace, or the person is not in it.
    """
    workspaces = list(Workspace.objects.visible_to(request.user).order_by("name"))
    workspace = next((row for row in workspaces if row.slug == slug), None)
    if workspace is None:
        raise NotFound
    if request.session.get("workspace") != slug:
        request.session["workspace"] = slug
    return {"workspace": workspace, "workspaces": workspaces, "role": role_of(request.user, workspace)}
