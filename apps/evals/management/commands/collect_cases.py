"""Write the answers that people kept as cases into a data set folder."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.evals.collecting import collect_cases
from apps.workspaces import command_line


class Command(BaseCommand):
    help = "Write the answers that people kept as cases into a data set folder, for evaluate."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="folder to write")
        command_line.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace, user = command_line.acting(options)
        try:
            count = collect_cases(workspace=workspace, actor=user, folder=options["path"].resolve())
        except KnowSphereError as error:
            raise CommandError(storable(error.message)) from error
        self.stdout.write(_("Cases: %(count)s") % {"count": count})
