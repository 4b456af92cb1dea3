"""Template tags of the frame around every page and of conversations."""

from datetime import timedelta
from typing import Any

from django import template
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.conversations.models import Conversation

register = template.Library()

SHOWN = 40


@register.simple_tag(takes_context=True)
def recent_conversations(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the side bar shows: pinned conversations, then the newest, grouped by when they were used.

    What is in the archive is not among them.
    """
    mine = Conversation.objects.visible_to(context["request"].user).filter(workspace=context["workspace"])
    mine = mine.filter(archived_at__isnull=True).only("pk", "title", "changed_at", "pinned_at")
    rows = list(mine.order_by(F("pinned_at").desc(nulls_last=True), "-changed_at")[:SHOWN])
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    week = today - timedelta(days=6)
    loose = [row for row in rows if row.pinned_at is None]
    groups = [
        {"label": _("Pinned"), "rows": [row for row in rows if row.pinned_at]},
        {"label": _("Today"), "rows": [row for row in loose if row.changed_at >= today]},
        {"label": _("Last 7 days"), "rows": [row for row in loose if week <= row.changed_at < today]},
        {"label": _("Earlier"), "rows": [row for row in loose if row.changed_at < week]},
    ]
    return [group for group in groups if group["rows"]]
