"""The evals app."""

from django.apps import AppConfig


class EvalsConfig(AppConfig):
    """The evals app."""

    name = "apps.evals"
