"""What was used: sums by model, person and time, a chart of them, and a file for spreadsheets."""

import csv
import io
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.models.budget_rules import written
from apps.models.models import TOKENS
from apps.models.querysets import UsageRecordQuerySet

PERIODS = (7, 30, 90, 365)  # days
DAYS = 30
WEEKS_FROM = 120  # days; a longer time is shown by week
WIDTH, HEIGHT, LEFT, TOP = 800, 190, 56, 10  # of the chart, in its own units
LABELS = 6  # dates under the chart, about
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
COLUMNS = ("day", "model", "kind", "purpose", "calls", "tokens_in", "tokens_cached", "tokens_out", "cost", "currency")
GROUPS: tuple[tuple[str | Promise, frozenset[str]], ...] = (  # what the purposes of calls are part of
    (_("Answering questions"), frozenset()),
    (_("Finding passages"), frozenset({"query", "rerank"})),
    (_("Reading documents"), frozenset({"passage", "describe", "transcribe"})),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One colour of a column: which group, and where it stands."""

    group: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """One day, or week from this day on, of the chart."""

    day: date
    shown: str  # its whole amount, for people
    calls: int
    x: float
    width: float
    pieces: list[Piece]
    label: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns, and lines to read them by (how high, what it says)."""

    unit: str  # "tokens", or a currency
    columns: list[Column]
    lines: list[tuple[float, str]]
    groups: list[tuple[int, str]]  # those that occur


@dataclass(frozen=True, slots=True)
class Report:
    """The sums of a time. Costs stand beside their currency; currencies are never added up."""

    models: list[dict[str, Any]]
    people: list[dict[str, Any]]
    chart: Chart
    units: list[str]  # that the chart can show
    calls: int
    answers: int
    tokens: int
    cached: int  # share of the tokens in, 0 to 100
    costs: list[tuple[str, Decimal]]
    per_answer: list[tuple[str, Decimal]]
    unpriced: int


def first_day(days: int = DAYS) -> datetime:
    """Return the start of the first of the last ``days`` days, in the active time zone."""
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days - 1)


def report(records: UsageRecordQuerySet, *, days: int = DAYS, unit: str = "") -> Report:
    """Sum up records of the last ``days`` days, in four statements. ``unit``: what the chart is to show."""
    records = records.since(first_day(days))
    models = records.by_model()
    costs = _costs(models)
    answers = records.filter(turn_id__isnull=False).values("turn_id").distinct().count()
    tokens_in = sum(row["tokens_in"] for row in models)
    units = [*costs, TOKENS]
    return Report(
        models=_merged(models, ("model", "kind")),
        people=_merged(records.by_person(), ("user",)),
        chart=_chart(records.by_time_and_purpose(weeks=days > WEEKS_FROM), days, unit if unit in units else units[0]),
        units=units,
        calls=sum(row["calls"] for row in models),
        answers=answers,
        tokens=tokens_in + sum(row["tokens_out"] for row in models),
        cached=round(100 * sum(row["tokens_cached"] for row in models) / tokens_in) if tokens_in else 0,
        costs=sorted(costs.items()),
        per_answer=[(currency, cost / answers) for currency, cost in sorted(costs.items())] if answers else [],
        unpriced=sum(row["unpriced"] for row in models),
    )


def as_csv(records: UsageRecordQuerySet, *, days: int = DAYS) -> str:
    """Return sums by day and model; begins with the mark by which Excel knows UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in records.since(first_day(days)).by_day_and_model():
        writer.writerow([neutral(row[column]) for column in COLUMNS])
    return "\ufeff" + out.getvalue()


def neutral(value: object) -> object:
    """Return a cell that no spreadsheet runs as a formula; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(FORMULAS):
        return "'" + value
    return "" if value is None else value


def _merged(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Make one row of those that differ in their currency alone; ``costs`` are (currency, cost)."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        found = merged.setdefault(tuple(row[name] for name in names), {**row, "costs": [], "calls": 0, "spent_ms": 0.0})
        if found["calls"]:
            for name in {"unpriced", "tokens_in", "tokens_out", "tokens_cached", "failed"} & row.keys():
                found[name] += row[name]
        found["calls"] += row["calls"]
        found["spent_ms"] += (row.get("ms") or 0) * row["calls"]
        found["ms"] = found["spent_ms"] / found["calls"]
        if row["cost"]:
            found["costs"].append((row["currency"], row["cost"]))
    return list(merged.values())


def _costs(rows: list[dict[str, Any]]) -> dict[str, Decimal]:
    costs: dict[str, Decimal] = {}
    for row in rows:
        if row["cost"]:
            costs[row["currency"]] = costs.get(row["currency"], Decimal(0)) + row["cost"]
    return costs


def _chart(rows: list[dict[str, Any]], days: int, unit: str) -> Chart:
    amounts: dict[date, list[Decimal]] = {}
    calls: dict[date, int] = {}
    for row in rows:
        calls[row["day"]] = calls.get(row["day"], 0) + row["calls"]
        if unit == TOKENS or row["currency"] == unit:
            amount = Decimal(row["tokens"] if unit == TOKENS else row["cost"] or 0)
            amounts.setdefault(row["day"], [Decimal(0)] * len(GROUPS))[_group(row["purpose"])] += amount
    top = _round_up(max((sum(day, Decimal(0)) for day in amounts.values()), default=Decimal(0)))
    times = _times(days)
    step = (WIDTH - LEFT) / len(times)
    every = max(1, round(len(times) / LABELS))
    columns = [
        Column(
            day=day,
            shown=written(sum(amounts.get(day, ()), Decimal(0)), unit),
            calls=calls.get(day, 0),
            x=round(LEFT + number * step, 1),
            width=round(step * 0.72, 1),
            pieces=_pieces(amounts.get(day, []), top),
            label=number % every == 0 and number <= len(times) - max(1, every // 2),
        )
        for number, day in enumerate(times)
    ]
    lines = [(round(HEIGHT - (HEIGHT - TOP) * part / 3, 1), _short(top * part / 3, unit)) for part in range(4)]
    found = {group for day in amounts.values() for group, amount in enumerate(day) if amount}
    return Chart(
        unit, columns, lines if top else lines[:1], [(group, str(GROUPS[group][0])) for group in sorted(found)]
    )


def _times(days: int) -> list[date]:
    """Return the days, or the Mondays, of a time."""
    first, last = first_day(days).date(), timezone.localdate()
    if days <= WEEKS_FROM:
        return [first + timedelta(days=number) for number in range(days)]
    monday = first - timedelta(days=first.weekday())
    return [monday + timedelta(weeks=number) for number in range((last - monday).days // 7 + 1)]


def _group(purpose: str) -> int:
    return next((place for place, (_name, purposes) in enumerate(GROUPS) if purpose in purposes), 0)


def _pieces(amounts: list[Decimal], top: Decimal) -> list[Piece]:
    pieces, y = [], float(HEIGHT)
    for group, amount in enumerate(amounts):
        if amount and top:
            height = float((HEIGHT - TOP) * amount / top)
            y -= height
            pieces.append(Piece(group, round(y, 1), round(max(height - 0.8, 0.6), 1)))
    return pieces


def _round_up(most: Decimal) -> Decimal:
    """Return a number not below ``most`` whose thirds are short to write."""
    if most <= 0:
        return Decimal(0)
    size = Decimal(10) ** most.adjusted()
    return next(size * Decimal(step) for step in ("1.2", "1.5", "3", "6", "9", "12") if size * Decimal(step) >= most)


def _short(amount: Decimal, unit: str) -> str:
    if not amount:
        return "0"
    if unit != TOKENS:
        return f"{amount:.2f}" if amount >= 1 else f"{amount:.2g}"
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if amount >= size:
            return f"{(amount / size).normalize():f}"[:5].rstrip(".") + letter
    return f"{amount.normalize():f}"
