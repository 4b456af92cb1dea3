"""The memory app."""

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    """The memory app."""

    name = "apps.memory"
