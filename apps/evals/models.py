"""Data sets of a workspace, and runs of evaluations."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.evals.querysets import CaseQuerySet, DatasetQuerySet, EvalRunQuerySet
from apps.knowledge.models import KnowledgeBase
from apps.workspaces.models import Share, Workspace


class Dataset(models.Model):
    """Questions of a team with what is right for them, to measure by."""

    class Kind(models.TextChoices):
        """What is measured."""

        RETRIEVAL = "retrieval", _("Which documents answer a question")
        INTENT = "intent", _("What a message wants")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(_("Name"), max_length=100)
    kind = models.CharField(_("Kind"), max_length=20, choices=Kind.choices)
    knowledge_base = models.ForeignKey(  # where questions of the kind "retrieval" are asked
        KnowledgeBase, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    restricted = models.BooleanField(_("Only for people it is shared with"), default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DatasetQuerySet.as_manager()

    class Meta:
        verbose_name = _("data set")
        verbose_name_plural = _("data sets")
        default_permissions = ()
        permissions: ClassVar = [("read_dataset", "May use a data set"), ("manage_dataset", "May change a data set")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="one_dataset_a_name"),
        ]

    def __str__(self) -> str:
        return f"data set {self.pk}"


class DatasetShare(Share):
    """A grant on one data set."""

    content_object = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="shares")

    class Meta(Share.Meta):
        abstract = False


class Case(models.Model):
    """One question of a data set: the documents that answer it, or the intent that it has."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="cases")
    text = models.TextField(max_length=4000)
    intent = models.CharField(max_length=40, blank=True)
    documents: models.Field = ArrayField(models.UUIDField(), default=list, blank=True)  # type: ignore[type-arg]
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CaseQuerySet.as_manager()

    class Meta:
        verbose_name = _("case")
        verbose_name_plural = _("cases")
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["dataset", "-created_at"], name="cases_newest")]

    def __str__(self) -> str:
        return f"case {self.pk}"


class EvalRun(models.Model):
    """One run over one data set, with its metrics. Failed items never leave the mean silently."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20)
    dataset = models.CharField(max_length=200)
    n = models.PositiveIntegerField()
    scored = models.PositiveIntegerField()
    failed = models.PositiveIntegerField()
    metrics = models.JSONField(default=dict)
    configuration = models.JSONField(default=dict)
    seconds = models.FloatField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EvalRunQuerySet.as_manager()

    class Meta:
        verbose_name = _("evaluation run")
        verbose_name_plural = _("evaluation runs")
        default_permissions = ()

    def __str__(self) -> str:
        return f"evaluation run {self.pk}"
