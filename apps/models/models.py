"""Configured models: which endpoint, which name, which key; what was used of them, and what may be."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.fields import EncryptedField
from apps.models.providers import CHOICES, CUSTOM
from apps.models.querysets import BudgetQuerySet, ModelConfigQuerySet, UsageRecordQuerySet
from apps.workspaces.models import Share, Workspace


class Kind(models.TextChoices):
    """What a model is for."""

    CHAT = "chat", _("Chat")
    EMBEDDING = "embedding", _("Embedding")
    RERANK = "rerank", _("Rerank")
    VISION = "vision", _("Vision")
    SPEECH = "speech", _("Speech")


class ModelConfig(models.Model):
    """One model at one OpenAI-compatible endpoint; of a workspace, or of the operator (no workspace)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, blank=True, related_name="model_configs"
    )
    kind = models.CharField(_("Kind"), max_length=10, choices=Kind.choices)
    provider = models.CharField(_("Vendor"), max_length=20, choices=CHOICES, default=CUSTOM)
    name = models.CharField(_("Name"), max_length=200)  # as the endpoint knows it
    base_url = models.URLField(_("Address"), max_length=500)
    api_key = EncryptedField(_("Key"), null=True, blank=True)
    configuration = models.JSONField(default=dict, blank=True)  # capabilities and limits, see gateway
    is_default = models.BooleanField(_("Default of its kind"), default=False)
    is_fast = models.BooleanField(_("Fast model beside the default"), default=False)  # chat only
    restricted = models.BooleanField(_("Only for people it is shared with"), default=False)
    enabled = models.BooleanField(_("In use"), default=True)
    fallback = models.ForeignKey(
        "self",
        verbose_name=_("Instead, while it is down"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    tested = models.JSONField(default=dict, blank=True, editable=False)  # the last Trial, with its time
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ModelConfigQuerySet.as_manager()

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        default_permissions = ()
        permissions: ClassVar = [
            ("read_modelconfig", "May choose a model"),
            ("manage_modelconfig", "May change a model"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "kind"],
                condition=models.Q(is_default=True),
                nulls_distinct=False,
                name="one_default_a_kind",
            ),
            models.UniqueConstraint(
                fields=["workspace", "kind"],
                condition=models.Q(is_fast=True),
                nulls_distinct=False,
                name="one_fast_a_kind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} model {self.pk}"


class ModelShare(Share):
    """A grant on one model: who may choose it. Asking an agent that was given it needs none."""

    content_object = models.ForeignKey(ModelConfig, on_delete=models.CASCADE, related_name="shares")

    class Meta(Share.Meta):
        abstract = False


class Outcome(models.TextChoices):
    """How a call ended."""

    OK = "ok", _("Done")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Stopped")


class UsageRecord(models.Model):
    """One call of a model. Numbers alone, no content; rows are written by apps.models.ledger only.

    The keys have no constraint in the database: rows are written after the work, when a workspace or a person
    may be gone, and no call may be lost for that. Agent, conversation and turn are plain ids.
    """

    at = models.DateTimeField(_("Time"))
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, related_name="+", db_constraint=False, db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", db_constraint=False
    )
    agent_id = models.UUIDField(null=True)
    widget_id = models.UUIDField(null=True)
    conversation_id = models.UUIDField(null=True)
    turn_id = models.UUIDField(null=True)
    model = models.CharField(_("Model"), max_length=250)  # ResolvedModel.reference
    kind = models.CharField(_("Kind"), max_length=10, choices=Kind.choices)
    purpose = models.CharField(_("Purpose"), max_length=30)
    tokens_in = models.PositiveIntegerField(_("Tokens in"))
    tokens_out = models.PositiveIntegerField(_("Tokens out"))
    tokens_cached = models.PositiveIntegerField(_("Of those in, cached"))
    estimated = models.BooleanField(_("Estimated"))
    ms = models.PositiveIntegerField(_("Milliseconds"))
    outcome = models.CharField(_("Outcome"), max_length=10, choices=Outcome.choices)
    price_in = models.DecimalField(max_digits=14, decimal_places=6, null=True)  # of a million tokens, at that time
    price_out = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    price_cached = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(_("Currency"), max_length=3, blank=True)
    cost = models.DecimalField(_("Cost"), max_digits=18, decimal_places=9, null=True)  # null: no price known

    objects = UsageRecordQuerySet.as_manager()

    class Meta:
        verbose_name = _("model call")
        verbose_name_plural = _("model calls")
        default_permissions = ("view",)
        indexes: ClassVar = [
            models.Index(fields=["workspace", "at"], name="usage_of_workspace"),
            models.Index(
                fields=["conversation_id"],
                condition=models.Q(conversation_id__isnull=False),
                name="usage_of_conversation",
            ),
        ]

    def __str__(self) -> str:
        return f"model call {self.pk}"


class Scope(models.TextChoices):
    """Whose calls a budget counts."""

    WORKSPACE = "workspace", _("The whole workspace")
    USER = "user", _("Each person")
    WIDGET = "widget", _("Each chat widget")
    TURN = "turn", _("Each answer")


class Period(models.TextChoices):
    """When a budget starts anew, by the calendar in UTC. A budget of answers has none."""

    DAY = "day", _("Each day")
    MONTH = "month", _("Each month")


TOKENS = "tokens"


class Budget(models.Model):
    """How much may be spent on models before calls are refused; apps.models.budgets keeps it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="budgets")
    scope = models.CharField(_("For"), max_length=10, choices=Scope.choices, default=Scope.WORKSPACE)
    subject = models.UUIDField(null=True, blank=True)  # one person or widget alone; null: each of them
    unit = models.CharField(_("Unit"), max_length=6, default=TOKENS)  # "tokens", or a currency: "CNY"
    amount = models.DecimalField(_("Limit"), max_digits=18, decimal_places=6)
    period = models.CharField(_("Starts anew"), max_length=10, choices=Period.choices, default=Period.MONTH)
    by_operator = models.BooleanField(_("Set by the operator"), default=False)  # the workspace cannot lift it
    created_at = models.DateTimeField(auto_now_add=True)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        default_permissions = ("view", "add", "change", "delete")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "scope", "subject", "unit", "period", "by_operator"],
                nulls_distinct=False,
                name="one_budget_of_a_kind",
            ),
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="budget_not_negative"),
        ]

    def __str__(self) -> str:
        return f"budget {self.pk}"


class Spending(models.Model):
    """What is spent of a budget in one period by one subject, calls in flight at their highest cost included."""

    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="spendings")
    subject = models.UUIDField(null=True)  # null: the workspace
    since = models.DateField()
    spent = models.DecimalField(max_digits=24, decimal_places=9, default=0)

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["budget", "subject", "since"], nulls_distinct=False, name="one_spending_a_period"
            ),
        ]

    def __str__(self) -> str:
        return f"spending {self.pk}"
