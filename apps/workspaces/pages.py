"""What the pages of a workspace have in common."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from apps.common.errors import NotAllowed, NotFound
from apps.workspaces import audit, permissions, rights
from apps.workspaces.models import Role, User

NO_ROW = UUID(int=0)  # in the addresses of a menu that stands for every row of a list (static/js/rows.js)


class PersonRequest(HttpRequest):
    """A request behind ``login_required``, as middleware leaves it."""

    user: User
    htmx: HtmxDetails


def enter(request: PersonRequest, slug: str, act: str = "") -> dict[str, Any]:
    """Return what the frame of a workspace's page shows, and remember it as the last one visited.

    Raises:
        NotFound: there is no such workspace, or the person is not in it.
        NotAllowed: their role there does not include ``act``, of ``permissions.ACTS``.
    """
    mine = rights.memberships(request.user).select_related("workspace").order_by("workspace__name")
    memberships = {membership.workspace: membership for membership in mine}
    workspace = next((row for row in memberships if row.slug == slug), None)
    if workspace is None:
        raise NotFound
    here = memberships[workspace]
    role = Role(here.role)
    if act and not permissions.allows(act, role):
        raise NotAllowed
    if request.session.get("workspace") != slug:
        request.session["workspace"] = slug
    right = audit.SUPPORT if here.support_until else str(role)  # as the log names it
    return {"workspace": workspace, "workspaces": list(memberships), "role": role, "right": right}
