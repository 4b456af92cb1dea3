"""Template tags of the frame around every page and of conversations."""

from datetime import timedelta
from typing import Any

from django import template
from django.db.models import F
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.conversations.models import Conversation
from apps.workspaces.pages import NO_ROW

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
        (_("Pinned"), [row for row in rows if row.pinned_at]),
        (_("Today"), [row for row in loose if row.changed_at >= today]),
        (_("Last 7 days"), [row for row in loose if week <= row.changed_at < today]),
        (_("Earlier"), [row for row in loose if row.changed_at < week]),
    ]
    address = reverse("conversations:show-conversation", args=[context["workspace"].slug, NO_ROW])
    here, untitled = getattr(context.get("conversation"), "pk", None), _("Untitled")

    def link(row: Conversation) -> dict[str, Any]:
        own = address.replace(str(NO_ROW), str(row.pk))
        return {"address": own, "title": row.title or untitled, "pinned": row.pinned_at, "here": row.pk == here}

    return [{"label": label, "talks": [link(row) for row in rows]} for label, rows in groups if rows]
