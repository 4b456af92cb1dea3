"""The first steps in a workspace: what they do, which are done. They go when all are, or when they are told to."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.knowledge.capability import knowledge_capability_enabled
from apps.knowledge.models import Document
from apps.knowledge.services import sample
from apps.workspaces import permissions
from apps.workspaces.models import Invitation, Membership, Role, User, Workspace

COOKIE = "ks_first_steps"  # of the workspace's own path; set when they were put away


@dataclass(frozen=True, slots=True)
class Step:
    """One step; ``name`` tells the template what its button does."""

    name: str
    title: str
    hint: str
    done: bool


def steps(*, workspace: Workspace, user: User, role: Role, asked: bool, own_model: bool) -> list[Step]:
    """Return the steps that ``user`` may take here; none once all are done."""
    found = []
    if knowledge_capability_enabled() and permissions.allows("create_knowledge_base", role):
        mine = Document.objects.visible_to(user).filter(workspace=workspace)
        uploaded = mine.exclude(knowledge_base__name=sample.NAME).exists()
        shown, read = (
            _("The answer shows which paragraph each fact came from."),
            _("PDF, Word, Excel, PowerPoint or text."),
        )
        found.append(Step("ask", _("Ask the sample guide a question"), shown, asked))
        found.append(Step("upload", _("Add a document of your own"), read, uploaded))
    if permissions.allows("manage_people", role):
        there = Membership.objects.filter(workspace=workspace).exclude(user=user).exists()
        invited = there or Invitation.objects.filter(workspace=workspace).exists()
        see, until = _("They see what you share with them."), _("Until then a small built-in model answers.")
        found.append(Step("invite", _("Invite a colleague"), see, invited))
        found.append(Step("model", _("Add a language model"), until, own_model))
    return [] if all(step.done for step in found) else found
