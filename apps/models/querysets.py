"""Reads of configured models."""

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Q

from apps.workspaces.models import User, Workspace

if TYPE_CHECKING:
    from apps.models.models import ModelConfig


class ModelConfigQuerySet(models.QuerySet["ModelConfig"]):
    """Reads of configured models."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep the operator's models (for anyone signed in) and those of the user's workspaces."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(Q(workspace__isnull=True) | Q(workspace__in=Workspace.objects.visible_to(user)))

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep models of workspaces that ``user`` owns or administers; never the operator's."""
        return self.filter(workspace__in=Workspace.objects.editable_by(user))
