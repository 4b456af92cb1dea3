"""What was used: sums by model and by day, a chart of them, and a file for spreadsheets."""

import csv
import io
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from apps.models.querysets import UsageRecordQuerySet

DAYS = 30
WIDTH, HEIGHT, LEFT, TOP = 800, 190, 44, 10  # of the chart, in its own units
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
COLUMNS = ("day", "model", "kind", "purpose", "calls", "tokens_in", "tokens_cached", "tokens_out", "cost", "currency")


@dataclass(frozen=True, slots=True)
class Bar:
    """One day of the chart."""

    day: date
    tokens: int
    calls: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Report:
    """The sums of a time. Costs stand beside their currency; currencies are never added up."""

    models: list[dict[str, Any]]
    bars: list[Bar]
    most: int
    calls: int
    tokens: int
    costs: list[tuple[str, Decimal]]
    unpriced: int


def first_day() -> datetime:
    """Return the start of the first of the last thirty days, in the active time zone."""
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=DAYS - 1)


def report(records: UsageRecordQuerySet) -> Report:
    """Sum up records of the last thirty days, in two statements."""
    models = records.by_model()
    costs: dict[str, Decimal] = {}
    for row in models:
        if row["cost"]:
            costs[row["currency"]] = costs.get(row["currency"], Decimal(0)) + row["cost"]
    bars, most = _bars({row["day"]: (row["tokens"], row["calls"]) for row in records.by_day()})
    return Report(
        models=models,
        bars=bars,
        most=most,
        calls=sum(row["calls"] for row in models),
        tokens=sum(row["tokens_in"] + row["tokens_out"] for row in models),
        costs=sorted(costs.items()),
        unpriced=sum(row["unpriced"] for row in models),
    )


def as_csv(records: UsageRecordQuerySet) -> str:
    """Return sums by day and model; begins with the mark by which Excel knows UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in records.by_day_and_model():
        writer.writerow([neutral(row[column]) for column in COLUMNS])
    return "\ufeff" + out.getvalue()


def neutral(value: object) -> object:
    """Return a cell that no spreadsheet runs as a formula; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(FORMULAS):
        return "'" + value
    return "" if value is None else value


def _bars(days: dict[date, tuple[int, int]]) -> tuple[list[Bar], int]:
    first = first_day().date()
    most = max((tokens for tokens, _calls in days.values()), default=0)
    step = (WIDTH - LEFT) / DAYS
    bars = []
    for number in range(DAYS):
        day = first + timedelta(days=number)
        tokens, calls = days.get(day, (0, 0))
        height = (HEIGHT - TOP) * tokens / most if most else 0.0
        x, y = round(LEFT + number * step, 1), round(HEIGHT - height, 1)
        bars.append(Bar(day, tokens, calls, x, y, round(step * 0.72, 1), round(height, 1)))
    return bars, most
