"""/budgets/."""

from decimal import Decimal
from typing import Any, ClassVar, cast
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.models import budget_services
from apps.models.models import TOKENS, Budget, Period, Scope
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, entered, within

READ, WRITE = "models:read", "models:write"


class SpentOut(serializers.Serializer[Any]):
    """What one person, one widget or the workspace spent in the running period."""

    subject = serializers.UUIDField(allow_null=True)
    spent = serializers.DecimalField(max_digits=24, decimal_places=9)
    share = serializers.IntegerField(help_text="Of the limit, 0 to 100.")


class BudgetOut(serializers.ModelSerializer[Budget]):
    """A budget: calls of models are refused before it is passed. Without `subject` each has as much."""

    spent = serializers.SerializerMethodField(help_text="Those who spent most of it; at most five.")
    until = serializers.SerializerMethodField(help_text="The day on which it starts anew; null for a turn's.")

    class Meta:
        model = Budget
        fields: ClassVar = [
            "id", "workspace", "scope", "subject", "unit", "amount", "period", "by_operator", "spent", "until",
            "created_at",
        ]  # fmt: skip
        read_only_fields = fields

    def _status(self, budget: Any) -> budget_services.Status:
        known: dict[Any, budget_services.Status] = cast("dict[str, Any]", self.context).setdefault("statuses", {})
        if budget.pk not in known:  # of a page all of its workspace at once
            rows: Any = self.parent.instance if isinstance(self.parent, serializers.ListSerializer) else [budget]
            here = [row for row in rows if row.workspace_id == budget.workspace_id]
            known |= {one.budget.pk: one for one in budget_services.statuses(budget.workspace, here)}
        return known[budget.pk]

    def get_spent(self, budget: Any) -> list[dict[str, Any]]:
        """Return who spent how much."""
        shape = SpentOut(self._status(budget).spent, many=True)
        return list(shape.data)

    def get_until(self, budget: Any) -> str | None:
        """Return when it starts anew."""
        day = self._status(budget).until
        return day.isoformat() if day else None


class BudgetIn(InWorkspace):
    """A budget, or another amount for the one of its kind."""

    scope = serializers.ChoiceField(choices=Scope.choices)
    subject = serializers.UUIDField(required=False, allow_null=True, help_text="One person or widget alone.")
    unit = serializers.CharField(max_length=6, default=TOKENS, help_text="`tokens`, or a currency such as `CNY`.")
    amount = serializers.DecimalField(max_digits=18, decimal_places=6, min_value=Decimal(0))
    period = serializers.ChoiceField(choices=Period.choices, default=Period.MONTH)


class _OfBudgets(ApiView):
    def rows(self) -> QuerySet[Budget]:
        return Budget.objects.visible_to(self.who).select_related("workspace")


class Budgets(_OfBudgets):
    """How much may be spent on models."""

    operations = {
        "GET": Operation(output=BudgetOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=BudgetIn, output=BudgetOut, status=201, scope=WRITE),
    }

    def on_get(self, request: Request) -> Response:
        """List the budgets of workspaces that you own or administer, the operator's too."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Set a budget, in a workspace that you own or administer; what was spent in the period already counts."""
        given = self.taken()
        workspace = entered(self, given.pop("workspace", None))
        made = budget_services.set_budget(workspace=workspace, actor=self.who, **given)
        return self.answer(self.row(made.pk))


class OneBudget(_OfBudgets):
    """A budget."""

    operations = {
        "GET": Operation(output=BudgetOut, scope=READ),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, budget_id: UUID) -> Response:
        """Return a budget, and how far it is spent."""
        return self.answer(self.row(budget_id))

    def on_delete(self, request: Request, budget_id: UUID) -> Response:
        """Remove a budget of a workspace that you own or administer; the operator's stay."""
        budget = self.row(budget_id, Budget.objects.editable_by(self.who))
        budget_services.remove_budget(budget=budget, actor=self.who)
        return self.done()
