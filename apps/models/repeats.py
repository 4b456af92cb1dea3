"""How much of the prompts repeated the request before, which vendors need not read again, and where they stopped to.

Prompts belong to turns, which an app above keeps: it registers who counts them, in ``AppConfig.ready``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.registry import Registry
from apps.workspaces.models import Workspace


@dataclass(frozen=True, slots=True)
class Repeats:
    """Bytes of prompts, how many of them repeated the request before, and how often each place broke that."""

    sent: int
    reused: int
    breaks: Mapping[str, int]  # by the place's code; "" is none

    @property
    def percent(self) -> int:
        """The repeated share, in hundredths."""
        return round(100 * self.reused / self.sent) if self.sent else 0

    @property
    def places(self) -> list[tuple[str, int]]:
        """The places where prompts broke, in words, the most frequent first."""
        found = sorted(self.breaks.items(), key=lambda item: -item[1])
        return [(place(code), count) for code, count in found if code]

    @classmethod
    def of(cls, rows: Iterable[Any]) -> "Repeats":
        """Sum up rows of (place, requests, bytes, repeated bytes)."""
        known = list(rows)
        breaks = {str(code or ""): int(count) for code, count, _sent, _reused in known}
        return cls(sum(int(row[2]) for row in known), sum(int(row[3]) for row in known), breaks)


Counter = Callable[[Workspace, datetime], Repeats]
COUNTERS = Registry[Counter]("counter of repeated prompts", {})


def count(workspace: Workspace, *, days: int) -> Repeats | None:
    """Return what the workspace's prompts of so many days repeated; None where there were none."""
    since = timezone.now() - timedelta(days=days)
    for name in COUNTERS:
        found = COUNTERS.get(name)(workspace, since)
        if found.sent:
            return found
    return None


def place(code: str) -> str:
    """Return what to call a place where a prompt stopped to repeat the one before."""
    words = {
        "turn_border": _("a new question"),
        "window_step": _("older turns left the window"),
        "handoff": _("earlier turns were summed up"),
        "changed_switch": _("a switch was changed"),
    }
    return words.get(code, _("elsewhere"))
