"""What every other app may use; no tables."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Registers the system checks."""

    name = "apps.common"

    def ready(self) -> None:
        from apps.common import checks  # noqa: F401
