"""Budgets as plain values: which of them cover a caller, when they start anew, and what to say when one is spent."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.utils import formats
from django.utils.translation import gettext as _

from apps.models.accounting import Caller
from apps.models.chat import ResolvedModel
from apps.models.errors import BudgetExhausted
from apps.models.models import TOKENS, Period, Scope


@dataclass(frozen=True, slots=True)
class Rule:
    """A budget. ``subject`` is the one person or widget that it is for; None: each of them."""

    id: UUID
    scope: str
    subject: UUID | None
    unit: str
    amount: Decimal
    period: str

    def subject_of(self, caller: Caller) -> UUID | None:
        """Return whose spending counts for a caller."""
        return {Scope.USER: caller.user_id, Scope.WIDGET: caller.widget_id}.get(Scope(self.scope))


def applying(rules: Iterable[Rule], caller: Caller) -> list[Rule]:
    """Keep the budgets that cover a caller, in the order of their ids."""
    return [rule for rule in rules if _covers(rule, caller)]


def _covers(rule: Rule, caller: Caller) -> bool:
    match rule.scope:
        case Scope.WORKSPACE:
            return True
        case Scope.TURN:
            return caller.turn_id is not None
    subject = rule.subject_of(caller)
    return subject is not None and rule.subject in (None, subject)


def since(rule: Rule, today: date) -> date:
    """Return the first day of the period that ``today`` is in."""
    return today if rule.period == Period.DAY else today.replace(day=1)


def until(rule: Rule, today: date) -> date:
    """Return the day on which the next period begins."""
    first = since(rule, today)
    return first + timedelta(days=1) if rule.period == Period.DAY else (first + timedelta(days=32)).replace(day=1)


def written(amount: Decimal, unit: str) -> str:
    """Return an amount for people: whole tokens, money to a hundredth, or two digits of it where it is less."""
    places = 0 if unit == TOKENS else 2
    if unit != TOKENS and 0 < amount < Decimal("0.1"):
        places = min(9, 1 - amount.adjusted())
    return formats.number_format(amount, decimal_pos=places, use_l10n=True, force_grouping=True)


def exhausted(rule: Rule, spent: Decimal, model: ResolvedModel | None = None) -> BudgetExhausted:
    """Return the error that says which budget is spent, and when it starts anew."""
    whose = {
        Scope.WORKSPACE: _("of this workspace"),
        Scope.USER: _("of each person") if rule.subject is None else _("of this person"),
        Scope.WIDGET: _("of this chat widget"),
        Scope.TURN: _("of one answer"),
    }[Scope(rule.scope)]
    if rule.scope == Scope.TURN:
        then = _("Ask for less at once; an owner or admin can raise it.")
        next_day = ""
    else:
        day = until(rule, datetime.now(UTC).date())
        then = _("It starts anew on %(day)s; an owner or admin can raise it.") % {"day": formats.date_format(day)}
        next_day = day.isoformat()
    return BudgetExhausted(
        model=model.name if model else _("any model"),
        budget=str(rule.id),
        scope=rule.scope,
        unit=_("tokens") if rule.unit == TOKENS else rule.unit,
        limit=written(rule.amount, rule.unit),
        spent=written(min(spent, rule.amount), rule.unit),
        until=next_day,
        whose=whose,
        then=then,
    )
