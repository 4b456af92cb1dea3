"""The knowledge app."""

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """The knowledge app."""

    name = "apps.knowledge"
