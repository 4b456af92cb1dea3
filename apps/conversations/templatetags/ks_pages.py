"""Template tags of the frame around every page and of conversations."""

from datetime import timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.conversations.models import Conversation

register = template.Library()

SHOWN = 40


@register.simple_tag(takes_context=True)
def recent_conversations(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the person's newest conversations in this workspace, grouped by how long ago they were used."""
    mine = Conversation.objects.visible_to(context["request"].user).filter(workspace=context["workspace"])
    rows = list(mine.order_by("-changed_at").only("pk", "title", "changed_at")[:SHOWN])
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    week = today - timedelta(days=6)
    groups = [
        {"label": _("Today"), "rows": [row for row in rows if row.changed_at >= today]},
        {"label": _("Last 7 days"), "rows": [row for row in rows if week <= row.changed_at < today]},
        {"label": _("Earlier"), "rows": [row for row in rows if row.changed_at < week]},
    ]
    return [group for group in groups if group["rows"]]
