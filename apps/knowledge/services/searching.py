"""How a base is searched, and which words mean the same to a workspace: saved by those who manage them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput
from apps.common.text import legible
from apps.knowledge.index_text import fold
from apps.knowledge.models import KnowledgeBase, SearchProfile, Synonyms
from apps.knowledge.retrieval.profiles import Profile
from apps.models.models import Kind, ModelConfig
from apps.workspaces import audit
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import require

FEWEST, MOST, LONGEST = 2, 12, 60  # words that mean the same; characters of one
MOST_GROUPS = 1_000  # of a workspace


@transaction.atomic
def save_search_profile(*, knowledge_base: KnowledgeBase, settings: Mapping[str, Any], actor: User) -> SearchProfile:
    """Make settings the base's own, for everybody who searches it; no settings bring the defaults back.

    Raises:
        InvalidInput: a setting that does not exist, a value it cannot have, or a model that is not there.
    """
    profile = Profile.of(settings)
    if profile.rerank_model is not None:
        usable = ModelConfig.objects.visible_to(actor).usable_in(knowledge_base.workspace_id)
        if not usable.filter(kind=Kind.RERANK, enabled=True, pk=profile.rerank_model).exists():
            raise InvalidInput(field="rerank_model", reason=_("there is no such rerank model here"))
    saved, _created = SearchProfile.objects.update_or_create(
        knowledge_base=knowledge_base, defaults={"chosen": profile.stored(), "changed_by": actor}
    )
    audit.did("base.changed", knowledge_base, who=actor, fields=["search_profile"])
    return saved


@transaction.atomic
def add_synonyms(*, workspace: Workspace, words: Sequence[str], actor: User) -> Synonyms:
    """Let words mean the same in every search of the workspace that finds too little.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace.
        InvalidInput: fewer than two different words, too many, or one that is too long.
    """
    require("manage_synonyms", actor=actor, workspace=workspace)
    different: dict[str, str] = {}
    for word in words:
        text = " ".join(legible(word).split())
        if text:
            different.setdefault(fold(text), text)
    if not FEWEST <= len(different) <= MOST:
        reason = _("give %(least)d to %(most)d different words") % {"least": FEWEST, "most": MOST}
        raise InvalidInput(field="words", reason=reason)
    if any(len(text) > LONGEST for text in different.values()):
        raise InvalidInput(field="words", reason=_("a word may have %(most)d characters") % {"most": LONGEST})
    if Synonyms.objects.filter(workspace=workspace).count() >= MOST_GROUPS:
        raise InvalidInput(field="words", reason=_("there are %(most)d groups already") % {"most": MOST_GROUPS})
    made = Synonyms.objects.create(workspace=workspace, words=list(different.values()), created_by=actor)
    audit.did("synonyms.added", made, who=actor)
    return made


@transaction.atomic
def delete_synonyms(*, synonyms: Synonyms, actor: User) -> None:
    """Let words no longer mean the same."""
    audit.did("synonyms.deleted", synonyms, who=actor)
    synonyms.delete()
