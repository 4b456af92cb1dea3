"""What the worker runs. Each task may run twice or be killed at any point: the services claim their rows."""

import logging
from typing import Any

from django.db import DatabaseError

from apps.knowledge import services
from apps.knowledge.retrieval import vector_indexes
from apps.knowledge.services.sweeping import WAITED_AT_START

logger = logging.getLogger(__name__)

SCHEDULES: dict[str, dict[str, Any]] = {
    "knowledge: recover and erase": {"func": "apps.knowledge.tasks.sweep", "schedule_type": "I", "minutes": 1},
    "knowledge: files without a row": {"func": "apps.knowledge.tasks.sweep_files", "schedule_type": "D"},
    "knowledge: indexes of vectors": {
        "func": "apps.knowledge.tasks.maintain_vector_indexes",
        "schedule_type": "I",
        "minutes": 10,
    },
}


def ingest_document(document_id: str) -> str:
    """Give a worker's turn to whichever document is next; return what became of it, for the queue's log.

    ``document_id`` is the document for which the turn was queued: not always the one that gets it.
    """
    services.sweep_if_due()
    services.advance_jobs()
    outcome = services.take_turn()
    if outcome != services.NOTHING_WAITS:
        services.pass_on()
    return outcome


def advance_moves() -> int:
    """Embed on in bases that move to another model."""
    return services.advance_moves()


def advance_jobs() -> int:
    """Schedule a slice of each job that is not through."""
    return services.advance_jobs()


def sweep() -> dict[str, int]:
    """Return lost work to the queue and erase what is deleted for good. Scheduled every minute."""
    return services.sweep()


def sweep_files() -> int:
    """Delete files that no row knows. Scheduled once a day."""
    return services.sweep_files()


def maintain_vector_indexes() -> list[str]:
    """Build and drop the large bases' indexes of vectors. Scheduled every ten minutes."""
    done = vector_indexes.maintain()
    return [*done.built, *done.dropped]


def schedule_sweepers() -> None:
    """Schedule both sweepers where they are not yet; an operator's own times for them stay."""
    from django_q.models import Schedule

    for name, fields in SCHEDULES.items():
        Schedule.objects.get_or_create(name=name, defaults=fields)


def sweep_at_start() -> None:
    """Sweep as a worker starts; a database that is not up yet is the next minute's business."""
    try:
        services.sweep(waited=WAITED_AT_START)
    except DatabaseError:
        logger.warning("no sweep at the start: the database does not answer")
