"""Probes of what requests stand on; ``/readyz`` asks them all.

A probe returns nothing where its part works, and raises or returns a word where it does not. Apps
above register theirs in ``AppConfig.ready``. Probes are quick and leave this machine alone: an endpoint
that is slow must not make the server look dead.
"""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import connection

from apps.common.registry import Registry

logger = logging.getLogger(__name__)

OK, DOWN, FULL = "ok", "down", "full"
LEAST_FREE_BYTES = 64 << 20
Probe = Callable[[], str | None]
PROBES = Registry[Probe](
    "probe",
    {
        "database": "apps.common.health.probe_database",
        "queue": "apps.common.health.probe_queue",
        "storage": "apps.common.health.probe_storage",
    },
)


def state_of_parts() -> dict[str, str]:
    """Return each part's name and state: "ok", or what is the matter with it."""
    return {name: _state(name) for name in PROBES}


def _state(name: str) -> str:
    try:
        return PROBES.get(name)() or OK
    except Exception as error:  # noqa: BLE001
        logger.warning("readyz: %s is down: %s", name, type(error).__name__)
        return DOWN


def probe_database() -> None:
    """Ask the database for a row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def probe_storage() -> str | None:
    """Look whether files can be stored: the folder can be written to and has room. A bucket is not asked."""
    if not settings.MEDIA_ROOT:
        return None
    root = Path(settings.MEDIA_ROOT)
    there = next(path for path in (root, *root.parents) if path.exists())  # made with the first file
    if not os.access(there, os.W_OK):
        return DOWN
    return FULL if shutil.disk_usage(there).free < LEAST_FREE_BYTES else None


def probe_queue() -> str | None:
    """Look whether a worker is connected: it keeps polling the queue in the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'knowsphere-worker' "
            "AND datname = current_database() LIMIT 1"
        )
        return None if cursor.fetchone() else DOWN
