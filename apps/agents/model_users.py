"""Which agents use configured models."""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.db.models import Exists, OuterRef

from apps.agents.models import Agent
from apps.models.models import ModelConfig
from apps.models.users import Use
from apps.workspaces.models import User


def find_in_agents(models: Collection[ModelConfig], asker: User) -> Iterable[tuple[UUID, Use]]:
    """Find the agents that answer with each model; those that the asker may not see have no name."""
    seen = Exists(Agent.objects.visible_to(asker).filter(pk=OuterRef("pk")))
    agents = Agent.objects.filter(model__in=models).annotate(seen=seen)
    for model, name, is_seen in agents.values_list("model", "name", "seen"):
        yield model, Use("agent", name if is_seen else "")
