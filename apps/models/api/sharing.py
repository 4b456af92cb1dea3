"""Shares of models."""

from django.db.models import QuerySet

from apps.models.api.views import WRITE
from apps.models.models import ModelConfig
from apps.workspaces.api.shares import OneShareOfRow, SharesOfRow


class SharesOfModel(SharesOfRow):
    """Who may choose or change a model besides the owners and admins of its workspace."""

    operations = SharesOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[ModelConfig]:
        return ModelConfig.objects.editable_by(self.who)


class OneShareOfModel(OneShareOfRow):
    """A share of a model."""

    operations = OneShareOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[ModelConfig]:
        return ModelConfig.objects.editable_by(self.who)
