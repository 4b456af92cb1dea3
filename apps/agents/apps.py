"""The agents app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentsConfig(AppConfig):
    """Says which agents use a model."""

    name = "apps.agents"
    verbose_name = _("Agents")

    def ready(self) -> None:
        from apps.models.users import USERS
        from apps.workspaces.erasing import OF_WORKSPACES
        from apps.workspaces.exporting import EXPORTERS

        USERS.register("agents", "apps.agents.model_users.find_in_agents")
        OF_WORKSPACES.register("agents", "apps.agents.ending.erase_workspace")
        EXPORTERS.register("agents", "apps.agents.ending.export")
