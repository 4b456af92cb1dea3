"""The models app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ModelsConfig(AppConfig):
    """Registers the checks of the environment's models."""

    name = "apps.models"
    verbose_name = _("Models")

    def ready(self) -> None:
        from apps.common.health import PROBES
        from apps.models import checks  # noqa: F401

        PROBES.register("models", "apps.models.health.probe_models")
