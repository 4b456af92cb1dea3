"""The chat widget on other people's sites."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WidgetsConfig(AppConfig):
    """See README.md."""

    name = "apps.widgets"
    verbose_name = _("Widgets")

    def ready(self) -> None:
        """Say whose budgets the app knows."""
        from apps.models.budget_services import SUBJECTS

        SUBJECTS.register("widget", "apps.widgets.services.is_widget")
