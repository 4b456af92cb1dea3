"""Who pays for a call, and what it cost.

Whoever begins work says once for whom (``charged_to``); every call of a model made inside, in
whatever task or thread, is booked to them. Calls outside of any are booked to nobody.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from apps.models.chat import Price, ResolvedModel, Usage

MILLION = 1_000_000
OK, FAILED, CANCELLED = "ok", "failed", "cancelled"


@dataclass(slots=True)
class Tally:
    """What a caller has spent so far. ``unpriced``: some calls had no known price."""

    cost: Decimal = Decimal(0)
    currency: str = ""
    unpriced: bool = False
    held: dict[str, Decimal] = field(default_factory=dict)  # unit -> spent of a budget of this turn, see budgets

    @property
    def known_cost(self) -> Decimal | None:
        """The whole cost, where every call had a price in one currency."""
        return None if self.unpriced else self.cost

    def add(self, cost: Decimal | None, currency: str) -> None:
        """Count one more call."""
        if cost is None or (cost and self.currency not in ("", currency)):
            self.unpriced = True
        elif cost:
            self.cost += cost
            self.currency = currency


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom calls are made."""

    workspace_id: UUID | None = None
    user_id: UUID | None = None
    agent_id: UUID | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    widget_id: UUID | None = None
    tally: Tally = field(default_factory=Tally, compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One call, as it is booked."""

    at: datetime
    caller: Caller
    model: ResolvedModel
    purpose: str
    usage: Usage
    ms: int
    outcome: str
    cost: Decimal | None


@dataclass(slots=True)
class Meter:
    """Counts one call while it runs."""

    usage: Usage = field(default_factory=Usage)
    outcome: str = OK
    sent: bool = False  # the vendor has the request
    at_end: Callable[[Usage, Decimal | None], None] | None = None  # hears what it used and cost

    def add(self, usage: Usage) -> None:
        """Count tokens of one request of several."""
        self.usage += usage


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)
NOBODY = Caller()


def current() -> Caller | None:
    """Return for whom this task works, or None."""
    return _caller.get()


@contextmanager
def charged_to(caller: Caller) -> Iterator[Caller]:
    """Book the calls made inside to ``caller``."""
    token = _caller.set(caller)
    try:
        yield caller
    finally:
        _caller.reset(token)


@contextmanager
def metered(model: ResolvedModel, purpose: str) -> Iterator[Meter]:
    """Book one call as it ends, however it ends; the caller sets ``usage`` meanwhile."""
    from apps.models import ledger

    caller = _caller.get() or NOBODY
    meter, began, at = Meter(), time.perf_counter(), datetime.now(UTC)
    try:
        yield meter
    except Exception:
        meter.outcome = FAILED
        raise
    except BaseException:  # cancelled, or the reader left
        meter.outcome = CANCELLED
        raise
    finally:
        cost = cost_of(meter.usage, model.price)
        if meter.at_end is not None:
            meter.at_end(meter.usage, cost)
        if caller is not NOBODY:
            caller.tally.add(cost, model.price.currency if model.price else "")
        ms = round((time.perf_counter() - began) * 1000)
        ledger.book(Entry(at, caller, model, purpose, meter.usage, ms, meter.outcome, cost))


def cost_of(usage: Usage, price: Price | None) -> Decimal | None:
    """Return what tokens cost, None where the price is not known. Cached tokens are a part of the prompt."""
    if price is None:
        return None
    cached = min(usage.cached, usage.prompt)
    cached_price = price.input if price.cached is None else price.cached
    total = (usage.prompt - cached) * price.input + cached * cached_price + usage.completion * price.output
    return total / MILLION
