"""``manage.py restore FILE``: put a backup in place, with web and worker stopped."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from apps.common import backup


class Command(BaseCommand):
    help = "Put a backup in place of what is here; stop web and worker first."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--replace", action="store_true", help="although there are people and files here")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = backup.restore(options["file"].absolute(), replace=options["replace"])
        except backup.BackupFailed as error:
            raise CommandError(str(error)) from error
        call_command("migrate", interactive=False, verbosity=0)
        call_command("check", databases=["default"], verbosity=0)
        self.stdout.write(f"Restored, with {count} files. Everything of the backup is here; start web and worker.")
