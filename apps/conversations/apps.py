"""The conversations app."""

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    """The conversations app."""

    name = "apps.conversations"

    def ready(self) -> None:
        from apps.workspaces.erasing import OF_PEOPLE, OF_WORKSPACES
        from apps.workspaces.exporting import EXPORTERS

        OF_WORKSPACES.register("conversations", "apps.conversations.leaving.erase_workspace")
        OF_PEOPLE.register("conversations", "apps.conversations.leaving.erase_person")
        EXPORTERS.register("conversations", "apps.conversations.leaving.export")
