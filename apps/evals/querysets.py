"""Reads of evaluation runs."""

from typing import TYPE_CHECKING, Self

from django.db import models

from apps.workspaces import rights
from apps.workspaces.principals import Who

if TYPE_CHECKING:
    from apps.evals.models import EvalRun


class EvalRunQuerySet(models.QuerySet["EvalRun"]):
    """Reads of evaluation runs."""

    def visible_to(self, who: Who) -> Self:
        """Keep runs of workspaces that ``who`` belongs to."""
        return self.filter(workspace__in=rights.workspaces(who, "evaluations:read"))
