"""Reads of evaluation runs."""

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models

from apps.workspaces.models import User, Workspace

if TYPE_CHECKING:
    from apps.evals.models import EvalRun


class EvalRunQuerySet(models.QuerySet["EvalRun"]):
    """Reads of evaluation runs."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep runs of workspaces that ``user`` belongs to."""
        return self.filter(workspace__in=Workspace.objects.visible_to(user))
