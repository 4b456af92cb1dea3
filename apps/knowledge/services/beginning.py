"""A person's first documents in a workspace."""

from django.utils.translation import gettext as _

from apps.knowledge.errors import NameTaken
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services import sample
from apps.knowledge.services.bases import create_knowledge_base
from apps.workspaces.models import User, Workspace


def begin_knowledge_base(*, workspace: Workspace, actor: User) -> KnowledgeBase:
    """Return the first base of the workspace that the actor made and may manage, or make one.

    Two files that arrive at once get the same base. The sample is no place for one's own documents.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace.
    """
    name = _("Documents")
    for wanted in (name, f"{name} · {actor.shown_name}"):
        found = _own(workspace, actor)
        if found is not None:
            return found
        try:
            create_knowledge_base(workspace=workspace, name=wanted, actor=actor)
        except NameTaken:  # by the request beside this one, or by somebody else's base
            continue
    return _own(workspace, actor) or create_knowledge_base(workspace=workspace, name=f"{name} {actor.pk}", actor=actor)


def _own(workspace: Workspace, actor: User) -> KnowledgeBase | None:
    mine = KnowledgeBase.objects.editable_by(actor).filter(workspace=workspace, created_by=actor)
    return mine.exclude(name=sample.NAME).with_rights(actor).order_by("created_at").first()
