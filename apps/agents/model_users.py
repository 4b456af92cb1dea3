"""Which agents use a configured model."""

from apps.agents.models import Agent
from apps.models.models import ModelConfig
from apps.models.users import Use
from apps.workspaces.models import User


def find_in_agents(model: ModelConfig, asker: User) -> list[Use]:
    """Find the agents that answer with a model; those that the asker may not see have no name."""
    visible = set(Agent.objects.visible_to(asker).filter(model=model).values_list("pk", flat=True))
    return [Use("agent", agent.name if agent.pk in visible else "") for agent in Agent.objects.filter(model=model)]
