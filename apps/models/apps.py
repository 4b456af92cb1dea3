"""The models app."""

from django.apps import AppConfig


class ModelsConfig(AppConfig):
    """Registers the checks of the environment's models."""

    name = "apps.models"

    def ready(self) -> None:
        from apps.models import checks  # noqa: F401
