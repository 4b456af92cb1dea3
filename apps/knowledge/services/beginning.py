"""A person's first documents in a workspace."""

from django.utils.translation import gettext as _

from apps.knowledge.errors import NameTaken
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services import sample
from apps.knowledge.services.bases import create_knowledge_base
from apps.workspaces.models import User, Workspace


def begin_knowledge_base(*, workspace: Workspace, actor: User) -> KnowledgeBase:
    """Return the first base of the workspace that the actor made and may manage, or make one.

    The sample is no place for one's own documents.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace.
    """
    mine = KnowledgeBase.objects.editable_by(actor).filter(workspace=workspace, created_by=actor)
    mine = mine.exclude(name=sample.NAME)
    found = mine.with_rights(actor).order_by("created_at").first()
    if found is not None:
        return found
    name = _("Documents")
    try:
        base = create_knowledge_base(workspace=workspace, name=name, actor=actor)
    except NameTaken:  # somebody else's
        base = create_knowledge_base(workspace=workspace, name=f"{name} · {actor.shown_name}", actor=actor)
    return KnowledgeBase.objects.editable_by(actor).with_rights(actor).get(pk=base.pk)
