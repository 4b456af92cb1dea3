"""Reads of widgets and their visitors: those who own or administer the workspace."""

from typing import TYPE_CHECKING, Self

from django.db import models

from apps.workspaces import rights
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Who

if TYPE_CHECKING:
    from apps.conversations.models import Conversation
    from apps.widgets.models import Visitor, Widget


class WidgetQuerySet(models.QuerySet["Widget"]):
    """Reads of widgets."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep widgets of workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=rights.workspaces(who, "workspace:read", rights.MANAGERS))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep widgets that ``who`` may change or delete."""
        return self.filter(workspace__in=rights.workspaces(who, "workspace:write", rights.MANAGERS))

    def published(self, public_id: str) -> Self:
        """Keep the one that other sites' pages name so, while it is switched on."""
        return self.filter(public_id=public_id, enabled=True, workspace__deleted_at__isnull=True)


class VisitorQuerySet(models.QuerySet["Visitor"]):
    """Reads of visitors."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep visitors of widgets that ``who`` may see."""
        from apps.widgets.models import Widget

        return self.filter(widget__in=Widget.objects.visible_to(who))


def transcripts(widget: "Widget") -> "models.QuerySet[Conversation]":
    """Select the conversations of a widget's visitors, newest first; the widget came through its door."""
    from apps.conversations.models import Conversation

    return Conversation.objects.filter(widget_id=widget.pk, deleted_at__isnull=True).order_by("-changed_at")
