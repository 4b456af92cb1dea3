"""The agents app."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """The agents app."""

    name = "apps.agents"
