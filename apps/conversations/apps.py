"""The conversations app."""

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    """The conversations app."""

    name = "apps.conversations"
