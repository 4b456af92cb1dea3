"""The frame of the REST API."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RestConfig(AppConfig):
    """One kind of view, errors, pages, throttles, idempotency and the schema; every app's ``api`` stands on it."""

    name = "apps.rest"
    verbose_name = _("REST API")

    def ready(self) -> None:
        """Let the schema know how callers sign in."""
        from apps.rest import schema  # noqa: F401
