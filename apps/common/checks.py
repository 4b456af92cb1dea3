"""System checks on the database: version, extensions, and the locale that hides Chinese."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import OperationalError, connections

OLDEST_SERVER = 160000
EXTENSIONS = {"vector", "pg_trgm"}


@register(Tags.database)
def check_server(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check what no migration can mend. Runs with ``migrate`` and ``check --database default``."""
    if "default" not in (databases or ()):
        return []
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version_num')::int")
            version = cursor.fetchone()[0]
            cursor.execute("SELECT name FROM pg_available_extensions")
            available = {row[0] for row in cursor.fetchall()}
            cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
            trigrams = None
            if cursor.fetchone():
                cursor.execute("SELECT cardinality(show_trgm('检索'))")
                trigrams = cursor.fetchone()[0]
    except OperationalError as error:
        return [Error("The database does not answer.", hint=str(error), id="knowsphere.E001")]
    return [*_version(version), *_extensions(available), *_locale(trigrams)]


def _version(version: int) -> list[CheckMessage]:
    if version >= OLDEST_SERVER:
        return []
    return [Error("KnowSphere needs PostgreSQL 16 or newer.", id="knowsphere.E002")]


def _extensions(available: set[str]) -> list[CheckMessage]:
    missing = ", ".join(sorted(EXTENSIONS - available))
    if not missing:
        return []
    hint = "The image pgvector/pgvector:pg18 has them; Debian has postgresql-18-pgvector."
    return [Error(f"The server lacks the extensions: {missing}.", hint=hint, id="knowsphere.E003")]


def _locale(trigrams: int | None) -> list[CheckMessage]:
    if trigrams is None or trigrams > 0:
        return []
    hint = "Create the database with LC_CTYPE C.UTF-8 (any UTF-8 locale but C) and restore into it."
    return [Error("pg_trgm sees no Chinese: LC_CTYPE is C.", hint=hint, id="knowsphere.E004")]
