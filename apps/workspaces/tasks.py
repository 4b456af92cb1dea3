"""Background work on workspaces."""

from typing import Any

from apps.workspaces import erasing

NAME = "Erase deleted workspaces and people"


def sweep() -> dict[str, int]:
    """Erase what is deleted, and what is older than it is to be kept. Scheduled every minute."""
    return erasing.sweep()


def schedule_sweeper(**kwargs: Any) -> None:
    """Have the sweeper run for good; an operator's own time for it stays."""
    from django_q.models import Schedule

    fields = {"func": "apps.workspaces.tasks.sweep", "schedule_type": Schedule.MINUTES, "minutes": 1, "repeats": -1}
    Schedule.objects.get_or_create(name=NAME, defaults=fields)
