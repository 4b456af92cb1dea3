"""Writes to agents."""

from django.db import transaction
from django.utils.translation import gettext as _

from apps.agents.models import Agent
from apps.workspaces.models import Workspace

DEFAULT_TOOLS = ("doc_retrieval", "get_document_info", "grep_chunks", "list_chunks")


def default_agent(workspace: Workspace) -> Agent:
    """Return the workspace's default agent, making it at the first call.

    It may use every base that the asker may read. Two racing first calls: the unique constraint
    picks the winner.
    """
    found = Agent.objects.filter(workspace=workspace, is_default=True).first()
    if found is not None:
        return found
    name = _("Assistant")
    if Agent.objects.filter(workspace=workspace, name=name).exists():
        name = f"{name} 1"
    with transaction.atomic():
        agent, _created = Agent.objects.get_or_create(
            workspace=workspace,
            is_default=True,
            defaults={"name": name, "tools": list(DEFAULT_TOOLS)},
        )
    return agent
