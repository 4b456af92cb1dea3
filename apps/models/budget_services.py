"""Writes to budgets, and how far each is spent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, NotFound
from apps.common.registry import Registry
from apps.models import budgets
from apps.models.accounting import Caller
from apps.models.budget_rules import Rule, since, until
from apps.models.models import TOKENS, Budget, Period, Scope, Spending
from apps.workspaces import audit, permissions
from apps.workspaces.models import Membership, User, Workspace

UNITS = (TOKENS, "USD", "CNY", "EUR")
MOST = Decimal(10) ** 12
SHOWN = 5  # people or widgets of one budget, those who spent most


@dataclass(frozen=True, slots=True)
class Spent:
    """What one subject spent of a budget in this period. ``share`` is 0 to 100."""

    subject: UUID | None
    name: str
    spent: Decimal
    share: int


@dataclass(frozen=True, slots=True)
class Status:
    """A budget, who spent how much of it, and when it starts anew (None for answers)."""

    budget: Budget
    spent: list[Spent]
    until: date | None
    name: str  # of the one person that it is for


def is_member(workspace: Workspace, subject: UUID) -> bool:
    """Return whether a person is in the workspace."""
    return Membership.objects.filter(workspace=workspace, user=subject).exists()


# Whose budget one may be, by its scope: is there such a one in a workspace? Apps above register their own.
SUBJECTS = Registry[Callable[[Workspace, UUID], bool]](
    "subject of budgets", {Scope.USER: "apps.models.budget_services.is_member"}
)


@transaction.atomic
def set_budget(
    *,
    workspace: Workspace,
    actor: User,
    scope: str,
    amount: Decimal,
    unit: str = TOKENS,
    period: str = Period.MONTH,
    subject: UUID | None = None,
    by_operator: bool = False,
) -> Budget:
    """Set a budget, or change the amount of the one that there is of its kind.

    What was spent in the period that is under way counts.

    Raises:
        NotFound, NotAllowed: the actor may not set budgets there; the operator's are set by staff alone.
        InvalidInput: a value that cannot be right.
    """
    if by_operator and not actor.is_staff:
        raise NotFound
    if not by_operator:
        permissions.require("set_budget", actor=actor, workspace=workspace)
    if scope not in Scope.values or period not in Period.values:
        raise InvalidInput(field=_("Applies to"), reason=_("there is no such budget"))
    if unit != TOKENS and not (len(unit) == 3 and unit.isascii() and unit.isupper()):
        raise InvalidInput(field=_("Unit"), reason=_("it is tokens, or a currency of three letters such as CNY"))
    if not amount.is_finite() or not 0 <= amount < MOST:
        raise InvalidInput(field=_("Limit"), reason=_("it is a number from 0 on"))
    if subject is not None and not (scope in SUBJECTS and SUBJECTS.get(scope)(workspace, subject)):
        if scope == Scope.USER:
            raise InvalidInput(field=_("Person"), reason=_("they are not in this workspace"))
        raise InvalidInput(field="subject", reason=_("there is none of this kind here"))
    budget, _made = Budget.objects.update_or_create(
        workspace=workspace,
        scope=scope,
        subject=subject,
        unit=unit,
        period=Period.MONTH if scope == Scope.TURN else period,
        by_operator=by_operator,
        defaults={"amount": amount},
    )
    _record("budget.set", budget, actor)
    transaction.on_commit(budgets.forget)
    return budget


@transaction.atomic
def remove_budget(*, budget: Budget, actor: User) -> None:
    """Remove a budget.

    Raises:
        NotFound: the actor may not edit it; the operator's are the operator's to remove.
    """
    if budget.by_operator:
        if not actor.is_staff:
            raise NotFound
    elif not Budget.objects.editable_by(actor).filter(pk=budget.pk).exists():
        raise NotFound
    _record("budget.removed", budget, actor)
    budget.delete()
    transaction.on_commit(budgets.forget)


def _record(action: str, budget: Budget, actor: User) -> None:
    said = {"scope": budget.scope, "amount": str(budget.amount), "unit": budget.unit, "period": budget.period}
    right = "operator" if budget.by_operator else ""
    audit.record(action, who=actor, workspace_id=budget.workspace_id, target=budget, right=right, **said)


def statuses(workspace: Workspace, rows: Sequence[Budget], *, people: Mapping[UUID, str] | None = None) -> list[Status]:
    """Return how far budgets of one workspace are spent; from the ledger where no call asked one yet.

    ``people``: addresses of its members, where the caller has read them.
    """
    budgets.settle_debts()
    today = datetime.now(UTC).date()
    rules = {row.pk: Rule(row.pk, row.scope, row.subject, row.unit, row.amount, row.period) for row in rows}
    current = Q(pk__in=[])
    for rule in rules.values():
        current |= Q(budget=rule.id, since=since(rule, today))
    spendings: dict[UUID, list[Spending]] = {}
    for spending in Spending.objects.filter(current).order_by("-spent"):
        spendings.setdefault(spending.budget_id, []).append(spending)
    if people is None:
        people = dict(Membership.objects.filter(workspace=workspace).values_list("user_id", "user__email"))
    return [
        Status(
            row,
            [
                Spent(one.subject, _name(row, one.subject, people), one.spent, _share(one.spent, row.amount))
                for one in spendings.get(row.pk, [])[:SHOWN]
            ]
            or ([_before(rules[row.pk], workspace, today)] if row.scope == Scope.WORKSPACE else []),
            None if row.scope == Scope.TURN else until(rules[row.pk], today),
            people.get(row.subject, "") if row.subject else "",
        )
        for row in rows
    ]


def _name(budget: Budget, subject: UUID | None, people: Mapping[UUID, str]) -> str:
    if budget.scope == Scope.USER and subject is not None:
        return people.get(subject) or _("somebody who left")
    return str(subject) if subject else ""


def _share(spent: Decimal, amount: Decimal) -> int:
    return min(100, int(spent * 100 / amount)) if amount else 100


def _before(rule: Rule, workspace: Workspace, today: date) -> Spent:
    """What the ledger has, while no call asked this budget yet."""
    spent = budgets.spent_before(rule, Caller(workspace.pk), since(rule, today))
    return Spent(None, "", spent, _share(spent, rule.amount))
