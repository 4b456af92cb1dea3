"""/datasets/."""

from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.evals import keeping
from apps.evals.models import Case, Dataset
from apps.knowledge.models import KnowledgeBase
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, entered, within
from apps.workspaces.api.shares import OneShareOfRow, SharesOfRow
from apps.workspaces.services import set_restricted

READ, WRITE = "evaluations:read", "evaluations:write"


class DatasetOut(serializers.ModelSerializer[Dataset]):
    """A data set: questions with what is right for them."""

    class Meta:
        model = Dataset
        fields: ClassVar = ["id", "workspace", "name", "kind", "knowledge_base", "restricted", "created_at"]
        read_only_fields = fields


class DatasetIn(InWorkspace):
    """A new data set. One of the kind `retrieval` asks one base."""

    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(choices=Dataset.Kind.choices)
    knowledge_base = serializers.UUIDField(required=False)
    restricted = serializers.BooleanField(required=False, help_text="Only for people whom it is shared with.")


class DatasetChange(serializers.Serializer[Any]):
    """What changes."""

    name = serializers.CharField(max_length=100, required=False)
    restricted = serializers.BooleanField(required=False, help_text="Only for people whom it is shared with.")


class CaseOut(serializers.ModelSerializer[Case]):
    """A question, and the documents that answer it or the intent that it has."""

    documents = serializers.ListField(child=serializers.UUIDField())

    class Meta:
        model = Case
        fields: ClassVar = ["id", "dataset", "text", "intent", "documents", "created_at"]
        read_only_fields = fields


class CaseIn(serializers.Serializer[Any]):
    """A new question, with what is right for it by the data set's kind."""

    text = serializers.CharField(max_length=4000)
    intent = serializers.CharField(max_length=40, required=False, allow_blank=True)
    documents = serializers.ListField(child=serializers.UUIDField(), max_length=100, required=False)


class _OfDatasets(ApiView):
    def rows(self) -> QuerySet[Any]:
        return Dataset.objects.visible_to(self.who)

    def editable(self, dataset_id: UUID) -> Dataset:
        """Return a data set that the caller may change. Raises NotFound."""
        found: Dataset = self.row(dataset_id, Dataset.objects.editable_by(self.who))
        return found


class Datasets(_OfDatasets):
    """Data sets to measure by."""

    operations = {
        "GET": Operation(output=DatasetOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=DatasetIn, output=DatasetOut, status=201, scope=WRITE),
    }

    def on_get(self, request: Request) -> Response:
        """List the data sets that you may use."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Make an empty data set; you may manage it."""
        given = self.taken()
        workspace = entered(self, given.pop("workspace", None))
        if "knowledge_base" in given:
            here = KnowledgeBase.objects.visible_to(self.who).filter(workspace=workspace)
            given["knowledge_base"] = self.row(given["knowledge_base"], here)
        return self.answer(keeping.create_dataset(workspace=workspace, actor=self.who, **given))


class OneDataset(_OfDatasets):
    """A data set."""

    operations = {
        "GET": Operation(output=DatasetOut, scope=READ),
        "PATCH": Operation(input=DatasetChange, output=DatasetOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, dataset_id: UUID) -> Response:
        """Return a data set."""
        return self.answer(self.row(dataset_id))

    @transaction.atomic
    def on_patch(self, request: Request, dataset_id: UUID) -> Response:
        """Rename a data set, or say that only those may use it whom it is shared with."""
        dataset, given = self.editable(dataset_id), self.taken()
        if "name" in given:
            keeping.rename_dataset(dataset=dataset, name=given["name"], actor=self.who)
        if "restricted" in given:
            set_restricted(row=dataset, restricted=given["restricted"], actor=self.who)
        return self.answer(self.row(dataset_id))

    def on_delete(self, request: Request, dataset_id: UUID) -> Response:
        """Delete a data set with its cases; runs stay."""
        keeping.delete_dataset(dataset=self.editable(dataset_id), actor=self.who)
        return self.done()


class Cases(_OfDatasets):
    """The questions of a data set."""

    operations = {
        "GET": Operation(output=CaseOut, many=True, scope=READ),
        "POST": Operation(input=CaseIn, output=CaseOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[Any]:
        return Case.objects.visible_to(self.who).filter(dataset=self.kwargs["dataset_id"])

    def on_get(self, request: Request, dataset_id: UUID) -> Response:
        """List the questions of a data set."""
        self.row(dataset_id, Dataset.objects.visible_to(self.who))
        return self.page(self.rows())

    def on_post(self, request: Request, dataset_id: UUID) -> Response:
        """Add a question to a data set that you may manage."""
        dataset = self.editable(dataset_id)
        return self.answer(keeping.add_case(dataset=dataset, actor=self.who, **self.taken()))


class OneCase(_OfDatasets):
    """A question of a data set."""

    operations = {"GET": Operation(output=CaseOut, scope=READ), "DELETE": Operation(status=204, scope=WRITE)}

    def on_get(self, request: Request, dataset_id: UUID, case_id: UUID) -> Response:
        """Return a question."""
        return self.answer(self.row(case_id, Case.objects.visible_to(self.who).filter(dataset=dataset_id)))

    def on_delete(self, request: Request, dataset_id: UUID, case_id: UUID) -> Response:
        """Delete a question."""
        mine = Case.objects.editable_by(self.who).filter(dataset=dataset_id).select_related("dataset")
        keeping.delete_case(case=self.row(case_id, mine), actor=self.who)
        return self.done()


class SharesOfDataset(SharesOfRow):
    """Who may use or change a data set besides the owners and admins of its workspace."""

    operations = SharesOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Dataset]:
        return Dataset.objects.editable_by(self.who)


class OneShareOfDataset(OneShareOfRow):
    """A share of a data set."""

    operations = OneShareOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[Dataset]:
        return Dataset.objects.editable_by(self.who)
