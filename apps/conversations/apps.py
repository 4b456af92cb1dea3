"""The conversations app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ConversationsConfig(AppConfig):
    """The conversations app."""

    name = "apps.conversations"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        from apps.models.repeats import COUNTERS
        from apps.workspaces.erasing import OF_PEOPLE, OF_WORKSPACES
        from apps.workspaces.exporting import EXPORTERS

        COUNTERS.register("turns", "apps.conversations.repeats.count")
        OF_WORKSPACES.register("conversations", "apps.conversations.leaving.erase_workspace")
        OF_PEOPLE.register("conversations", "apps.conversations.leaving.erase_person")
        EXPORTERS.register("conversations", "apps.conversations.leaving.export")
