"""Reads of data sets and evaluation runs."""

from typing import TYPE_CHECKING, Self

from django.db import models

from apps.workspaces import rights
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Who

if TYPE_CHECKING:
    from apps.evals.models import Case, Dataset, EvalRun


class DatasetQuerySet(models.QuerySet["Dataset"]):
    """Reads of data sets."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep data sets that ``who`` may use (``rights.read``)."""
        from apps.evals.models import DatasetShare

        return self.filter(rights.read(who, "evaluations:read", DatasetShare))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep data sets that ``who`` may change, delete and share."""
        from apps.evals.models import DatasetShare

        return self.filter(rights.manage(who, "evaluations:write", DatasetShare))


class CaseQuerySet(models.QuerySet["Case"]):
    """Reads of cases: by the rights on their data set."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep cases of data sets that ``who`` may use."""
        from apps.evals.models import Dataset

        return self.filter(dataset__in=Dataset.objects.visible_to(who))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep cases of data sets that ``who`` may change."""
        from apps.evals.models import Dataset

        return self.filter(dataset__in=Dataset.objects.editable_by(who))


class EvalRunQuerySet(models.QuerySet["EvalRun"]):
    """Reads of evaluation runs."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep runs of workspaces that ``who`` belongs to."""
        return self.filter(workspace__in=rights.workspaces(who, "evaluations:read"))
