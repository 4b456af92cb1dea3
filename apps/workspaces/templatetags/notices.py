"""``{% notices %}``: what operators tell the reader of this page."""

from typing import Any

from django import template

from apps.workspaces.services.notices import notices_for

register = template.Library()

DISMISSED = "dismissed_notices"  # in the session


@register.inclusion_tag("workspaces/partials/_notices.html", takes_context=True)
def notices(context: dict[str, Any]) -> dict[str, Any]:
    """Show the notices of this page's workspace that the reader has not closed."""
    request, workspace = context["request"], context.get("workspace")
    closed = request.session.get(DISMISSED, [])
    shown = notices_for(workspace.pk if workspace else None, dismissed=closed)
    return {"notices": shown, "path": request.get_full_path(), "csrf_token": context.get("csrf_token")}
