"""``manage.py backup FILE``: the database and the stored files in one archive, while everything runs."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.common import backup


class Command(BaseCommand):
    help = "Write the database and the stored files into one archive."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--no-files", action="store_true", help="the database alone; files are kept elsewhere")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            written = backup.write(options["file"].absolute(), with_files=not options["no_files"])
        except backup.BackupFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{options['file']}: {written['bytes']} bytes, {written['files']} files. MASTER_KEY is not in it: keep it "
            "in another place; without it the keys of models cannot be read."
        )
