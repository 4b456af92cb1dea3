"""Run a data set folder through retrieval or intent, print the metrics, store the run."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.evals.models import Dataset, EvalRun
from apps.evals.services import run_dataset, run_evaluation
from apps.workspaces import command_line


class Command(BaseCommand):
    help = "Evaluate retrieval or intent on a data set folder and store the run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, nargs="?", help="folder of the data set")
        parser.add_argument("--dataset", metavar="NAME", help="a data set of the workspace, in place of a folder")
        parser.add_argument("--kind", choices=["retrieval", "intent", "generation"])
        parser.add_argument("--corpus", type=Path, nargs="+", action="extend", default=[], metavar="EXTRA")
        parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
        command_line.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["kind"] == "generation":
            raise CommandError(_("Answers cannot be evaluated yet. Retrieval and intent can."))
        if (options["path"] is None) == (options["dataset"] is None):
            raise CommandError(_("Name a folder, or a data set of the workspace by --dataset."))
        if options["path"] is not None and options["kind"] is None:
            raise CommandError(_("Say what is measured: --kind retrieval or --kind intent."))
        workspace, user = command_line.acting(options)
        bars = _Bars()
        try:
            if options["dataset"] is not None:
                mine = Dataset.objects.visible_to(user).filter(workspace=workspace, name=options["dataset"])
                dataset = mine.select_related("workspace").first()
                if dataset is None:
                    raise CommandError(_("There is no data set of this name that you may use."))
                run = run_dataset(dataset=dataset, actor=user, progress=bars)
            else:
                run = run_evaluation(
                    kind=options["kind"],
                    folder=options["path"].resolve(),
                    extra=tuple(path.resolve() for path in options["corpus"]),
                    workspace=workspace,
                    actor=user,
                    progress=bars,
                )
        except KnowSphereError as error:
            raise CommandError(storable(error.message)) from error
        finally:
            bars.close()
        if options["json"]:
            self.stdout.write(json.dumps(as_json(run), ensure_ascii=False))
        else:
            self._print(run)
        if not run.configuration["valid"]:
            raise CommandError(
                _("Only %(scored)s of %(n)s could be scored: this run says nothing about quality.")
                % {"scored": run.scored, "n": run.n}
            )

    def _print(self, run: EvalRun) -> None:
        self.stdout.write(f"{run.dataset}: n {run.n}, scored {run.scored}, failed {run.failed}, {run.seconds} s")
        for name, value in run.metrics.items():
            self.stdout.write(f"{name:<12}{value:.4f}")


class _Bars:
    """One progress bar a stage, on a terminal only."""

    def __init__(self) -> None:
        self._stage, self._bar = "", None  # type: str, Any

    def __call__(self, stage: str, done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        if stage != self._stage:
            from tqdm import tqdm

            self.close()
            self._stage, self._bar = stage, tqdm(total=total, desc=stage, unit="")
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """End the bar that is open, if any."""
        if self._bar is not None:
            self._bar.close()


def as_json(run: EvalRun) -> dict[str, Any]:
    """Return the JSON shape of a run."""
    return {
        "run_id": str(run.pk),
        "kind": run.kind,
        "dataset": run.dataset,
        "n": run.n,
        "scored": run.scored,
        "failed": run.failed,
        "coverage": round(run.scored / run.n, 4) if run.n else 0.0,
        "valid": run.configuration["valid"],
        "metrics": run.metrics,
        "seconds": run.seconds,
    }
