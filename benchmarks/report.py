"""What a benchmark reports: our figure over a floor measured in the same run, on the same machine.

A figure alone says more about the machine than about us, so the ratio is what is judged. A benchmark
is ``benchmarks/bench_<thing>.py`` with ``def run() -> list[Ratio]``; ``make bench`` finds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """One measured figure of ours beside its floor.

    Attributes:
        name: what was measured.
        ours: our figure; smaller is better.
        floor: the same work without us, or a fixed limit where there is nothing to compare with.
        unit: of both figures.
        bar: the largest ``ours / floor`` that we accept.
    """

    name: str
    ours: float
    floor: float
    unit: str
    bar: float

    @property
    def value(self) -> float:
        """Return ours over floor; infinite over nothing."""
        return self.ours / self.floor if self.floor else float("inf")

    @property
    def met(self) -> bool:
        """Whether the bar holds."""
        return self.value <= self.bar


def table(ratios: Sequence[Ratio]) -> str:
    """Return ratios as lines of aligned columns."""
    head = ("what", "ours", "floor", "unit", "ratio", "bar", "")
    rows = [head, *(_row(ratio) for ratio in ratios)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in {0, 3, 6} else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _row(ratio: Ratio) -> tuple[str, ...]:
    return (
        ratio.name,
        f"{ratio.ours:.4g}",
        f"{ratio.floor:.4g}",
        ratio.unit,
        f"{ratio.value:.2f}",
        f"{ratio.bar:.2f}",
        "" if ratio.met else "above the bar",
    )
