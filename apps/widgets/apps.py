"""The chat widget on other people's sites."""

from django.apps import AppConfig


class WidgetsConfig(AppConfig):
    """See README.md."""

    name = "apps.widgets"
