"""Writes to agents, and to what their tools put away."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from apps.agents.handoff import Handoff
from apps.agents.models import Agent, ConversationHandoff, ToolResultRef
from apps.memory.services import erase_note
from apps.workspaces.models import User, Workspace

HANDOFFS_KEPT = 8  # of a conversation, for its branches
DEFAULT_TOOLS = (
    "doc_retrieval",
    "get_document_info",
    "grep_chunks",
    "list_chunks",
    "web_fetch",
    "web_search",
    "write_plan",
)


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


def store_result(
    *,
    workspace: Workspace,
    actor: User | None,
    conversation: UUID,
    turn: UUID,
    tool: str,
    text: str,
    documents: Sequence[str],
    numbers: Sequence[int],
) -> ToolResultRef:
    """Put a tool's whole result away; only its asker finds it again, in the same conversation."""
    return ToolResultRef.objects.create(
        workspace=workspace,
        user=actor,
        conversation=conversation,
        turn=turn,
        tool=tool,
        text=text,
        documents=list(documents),
        numbers=list(numbers),
    )


def store_handoff(*, workspace: Workspace, actor: User | None, conversation: UUID, handoff: Handoff) -> bool:
    """Keep a handoff, and of the conversation's older ones the newest few; False where it was there already."""
    if handoff.upto is None:
        return False
    _row, created = ConversationHandoff.objects.get_or_create(
        summary_upto_message_id=handoff.upto,
        defaults={
            "conversation": conversation,
            "workspace": workspace,
            "user": actor,
            "turns": handoff.turns,
            "parts": handoff.as_json(),
        },
    )
    own = ConversationHandoff.objects.filter(conversation=conversation).order_by("-created_at")
    own.exclude(pk__in=own.values("pk")[:HANDOFFS_KEPT]).delete()
    return created


def erase_conversation(conversation: UUID) -> None:
    """Erase what an erased conversation's turns had put away: results of tools, handoff, note."""
    ToolResultRef.objects.filter(conversation=conversation).delete()
    ConversationHandoff.objects.filter(conversation=conversation).delete()
    erase_note(conversation)
