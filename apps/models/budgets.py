"""What may be spent on models: asked before every call of a vendor, settled when it ends.

A call is let through when there is room for its prompt and a short answer. The most that it can cost is
held at once, in every budget that covers it (``Spending``), and its answer is limited to what there is room
for; what it did not use comes back as it ends. So calls at the same time, in any process, cannot overspend
together. A process that is killed leaves what it held as spent until the period ends: the safe side.

The budget of one answer lives in its ``Tally``, since a turn runs in one process.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_DOWN, Decimal
from typing import Any
from uuid import UUID

from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models import F, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Greatest, Least

from apps.common.database import in_db
from apps.models.accounting import MILLION, Caller, Meter, Tally, cost_of, current, metered
from apps.models.budget_rules import Rule, applying, exhausted, since
from apps.models.chat import ResolvedModel, Usage
from apps.models.errors import BudgetNeedsPrice
from apps.models.models import TOKENS, Budget, Scope, Spending, UsageRecord

logger = logging.getLogger(__name__)

KNOWN_FOR_S = 10.0  # how long another process may not know that a budget was changed
LEAST_ANSWER = 256  # tokens; a call that cannot get this much (or all it wants, if less) is refused
MOST = Decimal(10) ** 14  # that a row holds, however much a vendor says was used
MARGIN = 1.2  # a prompt's estimate scatters by a fifth

_Rows = tuple[tuple[int, str, Decimal], ...]  # (spending, unit, amount)
_Reserved = tuple[int, _Rows]
_InTurn = tuple[tuple[str, Decimal], ...]  # (unit, amount)
_known: dict[UUID, tuple[float, tuple[Rule, ...]]] = {}
_debts: deque[tuple[int, Decimal]] = deque()  # (spending, what to add), of calls that ended
_settling = threading.Lock()


@dataclass(frozen=True, slots=True)
class Hold:
    """What one call holds until it ends. ``answer``: tokens that it may write at most, None: any number."""

    answer: int | None
    tally: Tally | None = None
    turn: _InTurn = ()
    rows: _Rows = ()

    def settle(self, usage: Usage, cost: Decimal | None) -> None:
        """Give back what was not used. Never blocks: rows are written by the next hold or with the ledger."""
        used = {TOKENS: Decimal(usage.prompt + usage.completion)}
        for unit, amount in self.turn:
            if self.tally is not None:
                self.tally.held[unit] += used.get(unit, cost or Decimal(0)) - amount
        _debts.extend((row, used.get(unit, cost or Decimal(0)) - amount) for row, unit, amount in self.rows)


@asynccontextmanager
async def paid(
    model: ResolvedModel, purpose: str, prompt: Callable[[], int], answer: int = 0
) -> AsyncGenerator[tuple[Meter, int | None]]:
    """Meter one call of a vendor's model that its caller's budgets have room for.

    Gives the meter, and how many tokens the answer may have: ``answer``, or fewer near a budget's end; None where
    no budget covers it.
    ``prompt`` estimates the tokens in; it is asked only where there is a budget.

    Raises:
        BudgetExhausted, BudgetNeedsPrice: nothing was sent, and nothing is booked.
    """
    held = await hold(model, prompt, answer)
    with metered(model, purpose) as meter:
        meter.at_end = held.settle
        yield meter, held.answer


async def hold(model: ResolvedModel, prompt: Callable[[], int], answer: int) -> Hold:
    """Hold what a call may cost at most: its prompt's tokens in, up to ``answer`` tokens out.

    Without the database calls go on (a turn in flight finishes), and count once it is back.

    Raises:
        BudgetExhausted: a budget has no room for it. Nothing was sent.
        BudgetNeedsPrice: one in money covers it, and the model has no price in that currency.
    """
    caller = current()
    if caller is None or caller.workspace_id is None or model.provider == "builtin":
        return Hold(None)
    try:
        rules = applying(await _rules(caller.workspace_id), caller)
        if not rules:
            return Hold(None)
        tokens = int(prompt() * MARGIN)
        in_turn = [rule for rule in rules if rule.scope == Scope.TURN]
        stored = [rule for rule in rules if rule.scope != Scope.TURN]
        tally = caller.tally
        for rule in in_turn:
            answer = min(answer, _room(rule, tally.held.get(rule.unit, Decimal(0)), model, tokens, answer))
        units = {rule.unit for rule in in_turn}
        rows: _Rows = ()
        turn = _hold_in_turn(tally, units, model, tokens, answer)  # at once: other calls of the turn come meanwhile
        if stored:
            try:
                answer, rows = await _kept(in_db(_reserve, stored, caller, model, tokens, answer))
            finally:
                _release_in_turn(tally, turn)
            turn = _hold_in_turn(tally, units, model, tokens, answer)
    except (OperationalError, InterfaceError) as error:
        logger.warning("budgets are not asked, the database is away: %s", type(error).__name__)
        return Hold(None)
    return Hold(answer, tally, turn, rows)


def _hold_in_turn(tally: Tally, units: Iterable[str], model: ResolvedModel, prompt: int, answer: int) -> _InTurn:
    turn = tuple((unit, _amount(unit, model, prompt, answer)) for unit in units)
    for unit, amount in turn:
        tally.held[unit] = tally.held.get(unit, Decimal(0)) + amount
    return turn


def _release_in_turn(tally: Tally, turn: _InTurn) -> None:
    for unit, amount in turn:
        tally.held[unit] -= amount


async def check(caller: Caller) -> None:
    """Refuse work that no call could be made for, before it begins: a visitor's question, a turn.

    Raises:
        BudgetExhausted: a budget that covers the caller is spent.
    """
    await in_db(check_now, caller)


def check_now(caller: Caller) -> None:
    """Do what ``check`` does, for callers without an event loop."""
    if caller.workspace_id is None:
        return
    stored = [rule for rule in applying(_read(caller.workspace_id), caller) if rule.scope != Scope.TURN]
    if not stored:
        return
    settle_debts()
    for rule, row in zip(stored, _rows(stored, caller), strict=True):
        if row.spent >= rule.amount:
            raise exhausted(rule, row.spent)


def owe() -> bool:
    """Whether ended calls gave something back that is not written."""
    return bool(_debts)


def settle_debts() -> None:
    """Write what ended calls gave back, or used beyond their hold. What fails is kept for later."""
    if not _debts:
        return
    with _settling:
        sums: dict[int, Decimal] = {}
        while _debts:
            row, amount = _debts.popleft()
            sums[row] = sums.get(row, Decimal(0)) + amount
        try:
            with transaction.atomic():
                for row in sorted(sums):
                    amount = max(-MOST, min(sums[row], MOST))
                    spent = Least(Greatest(F("spent") + amount, Value(Decimal(0))), Value(MOST))
                    Spending.objects.filter(pk=row).update(spent=spent)
        except DatabaseError:
            _debts.extend(sums.items())
            raise


def forget() -> None:
    """Read budgets anew, as after one was changed."""
    _known.clear()


async def _kept(work: Coroutine[Any, Any, _Reserved]) -> _Reserved:
    """Await a reservation; if the caller is cancelled meanwhile, what it comes to hold is given back."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_give_back)
        raise


def _give_back(done: "asyncio.Task[_Reserved]") -> None:
    if not done.cancelled() and done.exception() is None:
        _debts.extend((row, -amount) for row, _unit, amount in done.result()[1])


async def _rules(workspace_id: UUID) -> tuple[Rule, ...]:
    read, rules = _known.get(workspace_id, (0.0, ()))
    if read and time.monotonic() - read < KNOWN_FOR_S:
        return rules
    return await in_db(_read, workspace_id)


def _read(workspace_id: UUID) -> tuple[Rule, ...]:
    budgets = Budget.objects.filter(workspace=workspace_id).order_by("pk")
    fields = ("id", "scope", "subject", "unit", "amount", "period")
    rules = tuple(Rule(*row) for row in budgets.values_list(*fields))
    _known[workspace_id] = (time.monotonic(), rules)
    return rules


def _reserve(rules: list[Rule], caller: Caller, model: ResolvedModel, prompt: int, answer: int) -> _Reserved:
    settle_debts()
    try:
        with transaction.atomic():
            rows = _rows(rules, caller, lock=True)
            for rule, row in zip(rules, rows, strict=True):
                answer = min(answer, _room(rule, row.spent, model, prompt, answer))
            held = []
            for rule, row in zip(rules, rows, strict=True):
                amount = _amount(rule.unit, model, prompt, answer)
                Spending.objects.filter(pk=row.pk).update(spent=F("spent") + amount)
                held.append((row.pk, rule.unit, amount))
    except IntegrityError:  # a budget was deleted meanwhile
        forget()
        return answer, ()
    return answer, tuple(held)


def _rows(rules: list[Rule], caller: Caller, *, lock: bool = False) -> list[Spending]:
    """Return the row of this period for each rule, made where there is none yet."""
    today = datetime.now(UTC).date()
    wanted = [(rule.id, rule.subject_of(caller), since(rule, today)) for rule in rules]

    def found() -> dict[tuple[UUID, UUID | None, date], Spending]:
        any_of = Q()
        for budget, subject, day in wanted:
            any_of |= (
                Q(budget=budget, subject=subject, since=day)
                if subject
                else Q(budget=budget, subject__isnull=True, since=day)
            )
        rows = Spending.objects.filter(any_of).order_by("pk")
        return {(row.budget_id, row.subject, row.since): row for row in (rows.select_for_update() if lock else rows)}

    rows = found()
    missing = [(rule, key) for rule, key in zip(rules, wanted, strict=True) if key not in rows]
    if missing:
        Spending.objects.bulk_create(
            [
                Spending(budget_id=key[0], subject=key[1], since=key[2], spent=spent_before(rule, caller, key[2]))
                for rule, key in missing
            ],
            ignore_conflicts=True,
        )
        rows = found()
    return [rows[key] for key in wanted]


def spent_before(rule: Rule, caller: Caller, day: date) -> Decimal:
    """Sum up what the ledger has of a period that was under way when its budget was made."""
    records: QuerySet[UsageRecord] = UsageRecord.objects.filter(
        workspace=caller.workspace_id, at__gte=datetime(day.year, day.month, day.day, tzinfo=UTC)
    ).exclude(model__startswith="builtin:")
    if rule.scope == Scope.USER:
        records = records.filter(user=caller.user_id)
    elif rule.scope == Scope.WIDGET:
        records = records.filter(widget_id=caller.widget_id)
    if rule.unit == TOKENS:
        sums = records.aggregate(spent=Coalesce(Sum(F("tokens_in") + F("tokens_out")), 0))
    else:
        sums = records.filter(currency=rule.unit).aggregate(spent=Coalesce(Sum("cost"), Decimal(0)))
    return Decimal(sums["spent"])


def _room(rule: Rule, spent: Decimal, model: ResolvedModel, prompt: int, answer: int) -> int:
    """Return how many tokens of answer a budget has room for. Raises BudgetExhausted where that is too few."""
    left = rule.amount - spent
    if left < _amount(rule.unit, model, prompt, min(answer, LEAST_ANSWER)):
        raise exhausted(rule, spent, model)
    if rule.unit == TOKENS:
        return int(left) - prompt
    price = model.price
    if price is None or not price.output:
        return answer
    rest = (left - _amount(rule.unit, model, prompt, 0)) * MILLION / price.output
    return int(rest.to_integral_value(ROUND_DOWN))


def _amount(unit: str, model: ResolvedModel, prompt: int, answer: int) -> Decimal:
    """Return what a call costs in a budget's unit. Raises BudgetNeedsPrice."""
    if unit == TOKENS:
        return Decimal(prompt + answer)
    cost = cost_of(Usage(prompt, answer), model.price)
    if cost is None or (cost and model.price is not None and model.price.currency != unit):
        raise BudgetNeedsPrice(model=model.name, unit=unit)
    return cost
