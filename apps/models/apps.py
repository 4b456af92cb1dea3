"""The models app."""

from django.apps import AppConfig


class ModelsConfig(AppConfig):
    """The models app."""

    name = "apps.models"
