"""Reads of configured models and of their use."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from django.db import models
from django.db.models import Avg, Count, F, Q, Sum
from django.db.models.functions import TruncDate, TruncWeek

from apps.workspaces import rights
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Principal, Who

if TYPE_CHECKING:
    from apps.models.models import Budget, ModelConfig, UsageRecord


class ModelConfigQuerySet(models.QuerySet["ModelConfig"]):
    """Reads of configured models."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep the operator's models (for anyone signed in) and those that ``who`` may choose (``rights.read``)."""
        from apps.models.models import ModelShare

        operators = Q(workspace__isnull=True) if Principal.of(who).may("models:read") else rights.NOTHING
        return self.filter(operators | rights.read(who, "models:read", ModelShare))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep models that ``who`` may change, delete and share; never the operator's."""
        from apps.models.models import ModelShare

        return self.filter(rights.manage(who, "models:write", ModelShare))

    def usable_in(self, workspace_id: UUID | None) -> Self:
        """Keep what work done for a workspace may call: its own models and the operator's."""
        own = Q(workspace=workspace_id) if workspace_id else Q(pk__in=[])
        return self.filter(own | Q(workspace__isnull=True))

    def own_first(self) -> Self:
        """Put a workspace's own models before the operator's, the oldest first."""
        return self.order_by(F("workspace").asc(nulls_last=True), "created_at")


class UsageRecordQuerySet(models.QuerySet["UsageRecord"]):
    """Reads of calls of models."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep calls for workspaces that ``who`` owns or administers: they pay, and see who used what."""
        return self.filter(workspace__in=rights.workspaces(who, "workspace:read", rights.MANAGERS))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep none: what was used is never changed."""
        return self.none()

    def since(self, moment: datetime) -> Self:
        """Keep calls from a moment on."""
        return self.filter(at__gte=moment)

    def by_model(self) -> list[dict[str, Any]]:
        """Sum up by model and currency, the most expensive first."""
        groups = self.values("model", "kind", "currency")
        failed = Count("pk", filter=Q(outcome="failed"))
        rows = groups.annotate(failed=failed, **_SUMS, ms=Avg("ms"))
        return [dict(row) for row in rows.order_by(F("cost").desc(nulls_last=True), "-tokens_in", "model")]

    def by_day(self) -> list[dict[str, Any]]:
        """Sum up tokens and calls by day, in the active time zone."""
        days = self.annotate(day=TruncDate("at")).values("day")
        rows = days.annotate(tokens=Sum(F("tokens_in") + F("tokens_out")), calls=Count("pk"))
        return [dict(row) for row in rows.order_by("day")]

    def by_person(self) -> list[dict[str, Any]]:
        """Sum up by person and currency, those who used most first; work of nobody has no person."""
        groups = self.values("user", "user__name", "user__email", "currency").annotate(**_SUMS)
        return [dict(row) for row in groups.order_by(F("cost").desc(nulls_last=True), "-tokens_in", "user")]

    def by_time_and_purpose(self, *, weeks: bool = False) -> list[dict[str, Any]]:
        """Sum up tokens, calls and costs by day (or by week, from Monday on) and purpose, in the active time zone."""
        day = TruncDate(TruncWeek("at")) if weeks else TruncDate("at")
        groups = self.annotate(day=day).values("day", "purpose", "currency")
        sums = groups.annotate(tokens=Sum(F("tokens_in") + F("tokens_out")), calls=Count("pk"), cost=Sum("cost"))
        return [dict(row) for row in sums.order_by("day", "purpose")]

    def by_workspace(self) -> list[dict[str, Any]]:
        """Sum up by workspace and currency, the most expensive first: for the operator."""
        groups = self.values("workspace", "workspace__slug", "currency").annotate(**_SUMS)
        return [dict(row) for row in groups.order_by(F("cost").desc(nulls_last=True), "-tokens_in", "workspace")]

    def by_day_and_model(self) -> list[dict[str, Any]]:
        """Sum up by day, model, kind, purpose and currency."""
        groups = self.annotate(day=TruncDate("at")).values("day", "model", "kind", "purpose", "currency")
        return [dict(row) for row in groups.annotate(**_SUMS).order_by("day", "model", "purpose")]


class BudgetQuerySet(models.QuerySet["Budget"]):
    """Reads of budgets."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep budgets of workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=rights.workspaces(who, "models:read", rights.MANAGERS))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep those of them that the operator did not set."""
        managed = rights.workspaces(who, "models:write", rights.MANAGERS)
        return self.filter(workspace__in=managed, by_operator=False)


_SUMS = {
    "unpriced": Count("pk", filter=Q(cost=None)),  # before "cost" becomes the name of a sum
    "calls": Count("pk"),
    "tokens_in": Sum("tokens_in"),
    "tokens_out": Sum("tokens_out"),
    "tokens_cached": Sum("tokens_cached"),
    "cost": Sum("cost"),
}
