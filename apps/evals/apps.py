"""The evals app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EvalsConfig(AppConfig):
    """The evals app."""

    name = "apps.evals"
    verbose_name = _("Evaluation")

    def ready(self) -> None:
        from apps.workspaces.exporting import EXPORTERS

        EXPORTERS.register("evals", "apps.evals.keeping.export")
