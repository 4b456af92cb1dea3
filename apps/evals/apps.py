"""The evals app."""

from django.apps import AppConfig


class EvalsConfig(AppConfig):
    """The evals app."""

    name = "apps.evals"

    def ready(self) -> None:
        from apps.workspaces.exporting import EXPORTERS

        EXPORTERS.register("evals", "apps.evals.keeping.export")
