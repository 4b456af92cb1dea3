"""``manage.py setup``: bring the database up to date, check it, and fill an empty one for a first look."""

import os
from io import StringIO
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Migrate, check what no migration can mend; on one's own machine make the demo workspace if there is none."""

    help = "Bring the database up to date and check it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        call_command("check", databases=["default"], verbosity=0)
        call_command("recount_quotas", stdout=StringIO())
        root = settings.STATIC_ROOT  # only in production; in the image the files are gathered, and read-only
        if root and os.access(root.parent, os.W_OK):
            call_command("collectstatic", interactive=False, verbosity=0)
        if settings.ENVIRONMENT == "local":
            call_command("demo", if_empty=True, stdout=StringIO())
