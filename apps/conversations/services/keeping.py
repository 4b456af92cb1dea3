"""Conversations as their owner keeps them: begun, named, pinned, archived, deleted and restored."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.agents.models import Agent
from apps.common.errors import InvalidInput, NotFound
from apps.common.text import legible
from apps.conversations.erasing import UNDO
from apps.conversations.models import Conversation, Turn
from apps.workspaces import permissions, rights
from apps.workspaces.models import User, Workspace

TITLE_LENGTH = 16  # characters of the first question; people give a longer one themselves
LONGEST_TITLE = 200


@transaction.atomic
def start_conversation(*, workspace: Workspace, actor: User, agent: Agent | None = None) -> Conversation:
    """Create an empty conversation; its title comes with the first question.

    Raises:
        NotFound: the actor is not in the workspace, or the agent is not of it.
    """
    permissions.require("ask", actor=actor, workspace=workspace)
    if agent is not None and agent.workspace_id != workspace.pk:
        raise NotFound
    return Conversation.objects.create(workspace=workspace, owner=actor, agent=agent)


def title_of(text: str) -> str:
    """Return the beginning of a first question, as one line of whole words."""
    line = " ".join(legible(text).split())
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1]
    words = cut.rpartition(" ")[0] if line[TITLE_LENGTH - 1] != " " else cut
    return f"{words if len(words) > TITLE_LENGTH // 2 else cut}…"


def rename_conversation(*, conversation: Conversation, title: str, actor: User) -> Conversation:
    """Give a conversation another title.

    Raises:
        InvalidInput: nothing readable is left of it, or it is too long.
        NotFound: it is not the actor's.
    """
    title = " ".join(legible(title).split())
    if not title:
        raise InvalidInput(field="title", reason=_("it is empty. The old title stays; write another."))
    if len(title) > LONGEST_TITLE:
        reason = _("it has more than %(limit)s characters. The old title stays; shorten it.")
        raise InvalidInput(field="title", reason=reason % {"limit": LONGEST_TITLE})
    _update(conversation, actor, title=title)
    return conversation


def pin_conversation(*, conversation: Conversation, pinned: bool, actor: User) -> None:
    """Put a conversation above all others, or back in its place. Raises NotFound."""
    _update(conversation, actor, pinned_at=timezone.now() if pinned else None)


def archive_conversation(*, conversation: Conversation, archived: bool, actor: User) -> None:
    """Take a conversation out of the side bar, or back into it; it stays readable and findable. Raises NotFound."""
    _update(conversation, actor, archived_at=timezone.now() if archived else None)


def _update(conversation: Conversation, actor: User, **values: object) -> None:
    """Change columns of the actor's own row, not the time at which it was last used."""
    if not Conversation.objects.editable_by(actor).filter(pk=conversation.pk).update(**values):
        raise NotFound
    for name, value in values.items():
        setattr(conversation, name, value)


def delete_conversation(*, conversation: Conversation, actor: User) -> None:
    """Hide a conversation from every door at once and stop its turn; erased when Undo has lapsed."""
    with transaction.atomic():
        own = Conversation.objects.editable_by(actor).filter(pk=conversation.pk)
        if not own.update(deleted_at=timezone.now()):
            raise NotFound
        Turn.objects.filter(conversation=conversation, status__in=Turn.ACTIVE).update(stop_requested=True)


def restore_conversation(*, conversation_id: UUID, actor: User) -> Conversation:
    """Undo a deletion that is less than a minute old. Raises NotFound."""
    recent = timezone.now() - UNDO
    mine = Conversation.objects.filter(pk=conversation_id, owner=actor, deleted_at__gt=recent)
    mine = mine.filter(workspace__in=rights.workspaces(actor, "conversations:write"))
    if not mine.update(deleted_at=None):
        raise NotFound
    return Conversation.objects.visible_to(actor).get(pk=conversation_id)
