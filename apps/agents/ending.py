"""What a workspace's end and its export mean for agents."""

from collections.abc import Iterable, Iterator
from uuid import UUID

from apps.agents.models import Agent, ConversationHandoff, ToolResultRef
from apps.workspaces.exporting import as_lines
from apps.workspaces.models import User, Workspace


def erase_workspace(workspace_id: UUID) -> bool:
    """Erase agents, which hold on to the models, and what their tools put away."""
    for kind in (ToolResultRef, ConversationHandoff, Agent):
        kind.objects.filter(workspace=workspace_id).delete()
    return True


def export(workspace: Workspace, actor: User) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Export the agents that the exporter may see."""
    agents = Agent.objects.visible_to(actor).filter(workspace=workspace)
    columns = ("id", "name", "instructions", "tools", "configuration", "restricted", "is_default")
    yield "agents.jsonl", as_lines(list(agents.values(*columns)))
