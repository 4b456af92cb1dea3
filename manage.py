#!/usr/bin/env python
"""Run a KnowSphere command. The embedded database is up while the command runs."""

import os
import signal
import sys

from django.core.exceptions import ImproperlyConfigured

from knowsphere import postgres
from knowsphere.postgres_files import ServerUnavailable

WITHOUT_DATABASE = {"makemessages", "compilemessages", "collectstatic", "help", "version"}


def run() -> None:
    """Run the command; a database that cannot be reached is a sentence, not a traceback."""
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        if "connection failed" not in str(error):
            raise
        reason = str(error).strip().splitlines()[0]
        sys.exit(f"The database does not answer: {reason}. Nothing was lost; start it, or correct DATABASE_URL.")


def main() -> None:
    """Start the embedded database where it is in use, then hand over to Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))  # so that the database is let go
    try:
        if len(sys.argv) > 1 and sys.argv[1] not in WITHOUT_DATABASE:
            postgres.hold()
        run()
    except (ImproperlyConfigured, ServerUnavailable) as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
