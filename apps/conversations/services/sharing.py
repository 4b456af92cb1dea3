"""Links to a conversation: made, widened, taken back."""

from django.db import transaction

from apps.common.errors import NotFound
from apps.conversations.models import Conversation, Share, Turn
from apps.workspaces import audit, permissions
from apps.workspaces.models import User


@transaction.atomic
def share_conversation(*, conversation: Conversation, turn: Turn, audience: str, actor: User) -> Share:
    """Make a link to the conversation as it is up to ``turn``, or move and widen the one there is.

    What is asked later is not shared until this is called again. A link that was for everybody and is
    for the workspace now gets another secret, since the old one may be anywhere.

    Raises:
        NotFound: the conversation is not the actor's, or the turn is not of it.
        NotAllowed: their role does not let them share outside the workspace.
    """
    own = Conversation.objects.editable_by(actor).select_related("workspace").filter(pk=conversation.pk).first()
    if own is None or turn.conversation_id != own.pk:
        raise NotFound
    audience = Share.Audience(audience)
    act = "share_outside" if audience is Share.Audience.ANYONE else "ask"
    permissions.require(act, actor=actor, workspace=own.workspace)
    before = Share.objects.select_for_update().filter(conversation=own).first()
    if before and before.audience == Share.Audience.ANYONE and audience is not Share.Audience.ANYONE:
        before.delete()
    values = {"turn": turn, "audience": audience}
    share, _created = Share.objects.update_or_create(conversation=own, defaults=values)
    place = own.workspace_id
    audit.record("conversation.shared", who=actor, workspace_id=place, target=own, audience=str(audience))
    return share


@transaction.atomic
def unshare_conversation(*, conversation: Conversation, actor: User) -> None:
    """Take the link back: it leads nowhere from now on, and a later one is another. Raises NotFound."""
    own = Conversation.objects.editable_by(actor).filter(pk=conversation.pk).first()
    if own is None:
        raise NotFound
    if Share.objects.filter(conversation=own).delete()[0]:
        audit.record("conversation.unshared", who=actor, workspace_id=own.workspace_id, target=own)
