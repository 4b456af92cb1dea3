"""``manage.py setup``: bring the database up to date and check it."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Migrate, then check what no migration can mend."""

    help = "Bring the database up to date and check it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        call_command("check", databases=["default"], verbosity=0)
