"""The agents app."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Says which agents use a model."""

    name = "apps.agents"

    def ready(self) -> None:
        from apps.models.users import USERS

        USERS.register("agents", "apps.agents.model_users.find_in_agents")
