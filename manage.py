#!/usr/bin/env python
"""Run a KnowSphere command. The embedded database is up while the command runs."""

import os
import sys

from knowsphere import postgres

WITHOUT_DATABASE = {"makemessages", "compilemessages", "collectstatic", "help", "version"}


def main() -> None:
    """Start the embedded database where it is in use, then hand over to Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
    if len(sys.argv) > 1 and sys.argv[1] not in WITHOUT_DATABASE:
        postgres.hold()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
