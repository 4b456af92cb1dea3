"""/models/ and /usage/."""

from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from apps.common.errors import NotAllowed
from apps.models import services
from apps.models.api.shapes import ModelChange, ModelIn, ModelOut, TrialOut, UsageOut, UsageQuery
from apps.models.models import ModelConfig, UsageRecord
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, entered
from apps.workspaces.models import Workspace
from apps.workspaces.services import set_restricted

READ, WRITE = "models:read", "models:write"


class _OfModels(ApiView):
    def rows(self) -> QuerySet[ModelConfig]:
        mine = ModelConfig.objects.editable_by(self.who).filter(pk=OuterRef("pk"))
        return ModelConfig.objects.visible_to(self.who).annotate(editable=Exists(mine))

    def editable(self, model_id: UUID) -> ModelConfig:
        """Return a model that the caller may change. Raises NotFound."""
        found: ModelConfig = self.row(model_id, ModelConfig.objects.editable_by(self.who))
        return found


class Models(_OfModels):
    """Models that answer, embed, order, see and listen."""

    operations = {
        "GET": Operation(output=ModelOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=ModelIn, output=ModelOut, status=201, scope=WRITE),
    }

    def on_get(self, request: Request) -> Response:
        """List the models of your workspaces, and the operator's."""
        wanted = self.asked().get("workspace")
        found = self.rows()
        return self.page(found.filter(Q(workspace=wanted) | Q(workspace=None)) if wanted else found)

    def on_post(self, request: Request) -> Response:
        """Add a model of a workspace that you own or administer."""
        given = self.taken()
        workspace = entered(self, given.pop("workspace", None))
        return self.answer(self.row(services.add_model(workspace=workspace, actor=self.who, **given).pk))


class OneModel(_OfModels):
    """A model."""

    operations = {
        "GET": Operation(output=ModelOut, scope=READ),
        "PATCH": Operation(input=ModelChange, output=ModelOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, model_id: UUID) -> Response:
        """Return a model."""
        return self.answer(self.row(model_id))

    def on_patch(self, request: Request, model_id: UUID) -> Response:
        """Change a model."""
        model, given = self.editable(model_id), self.taken()
        restricted = given.pop("restricted", None)
        if given:
            services.change_model(model=model, actor=self.who, **given)
        if restricted is not None:
            set_restricted(row=model, restricted=restricted, actor=self.who)
        return self.answer(self.row(model_id))

    def on_delete(self, request: Request, model_id: UUID) -> Response:
        """Delete a model that nothing uses; else the error names what does, as far as you may see it."""
        services.delete_model(model=self.editable(model_id), actor=self.who)
        return self.done()


class TestModel(_OfModels):
    """The test of a model."""

    operations = {"POST": Operation(output=TrialOut, changes=False, scope=WRITE)}

    def on_post(self, request: Request, model_id: UUID) -> Response:
        """Call a model as real work would, and say how it went."""
        return self.answer(asdict(services.test_model(model=self.editable(model_id), actor=self.who)))


class Usage(ApiView):
    """What models were used for."""

    operations = {"GET": Operation(query=UsageQuery, output=UsageOut, scope="workspace:read")}

    def on_get(self, request: Request) -> Response:
        """Sum up what a workspace that you own or administer used, by model and by day."""
        asked = self.asked()
        workspace = entered(self, asked.get("workspace"))
        if not Workspace.objects.editable_by(self.who).filter(pk=workspace.pk).exists():
            raise NotAllowed
        since = timezone.now() - timedelta(days=asked["days"])
        records = UsageRecord.objects.visible_to(self.who).filter(workspace=workspace).since(since)
        return self.answer({"since": since, "models": records.by_model(), "days": records.by_day()})
