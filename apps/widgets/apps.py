"""The chat widget on other people's sites."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WidgetsConfig(AppConfig):
    """See README.md."""

    name = "apps.widgets"
    verbose_name = _("Widgets")
