"""Knowledge bases: made, shared, deleted."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.common.errors import InvalidInput
from apps.common.text import display_name, legible
from apps.knowledge.capability import require_knowledge
from apps.knowledge.chunkers import validated_settings
from apps.knowledge.errors import NameTaken
from apps.knowledge.models import KnowledgeBase, KnowledgeBaseShare
from apps.workspaces import audit
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import require
from apps.workspaces.services.sharing import Level, Subject, share, unshare


def create_knowledge_base(
    *,
    workspace: Workspace,
    name: str,
    actor: User,
    description: str = "",
    restricted: bool = False,
    chunker: str = "parent_child",
    chunker_settings: Mapping[str, Any] | None = None,
) -> KnowledgeBase:
    """Create an empty knowledge base; whoever makes it may manage it.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace.
        KnowledgeOff: this server works without documents.
        NameTaken: the workspace has a base of this name.
        InvalidInput: no name, or chunker settings that cannot be used.
    """
    require("create_knowledge_base", actor=actor, workspace=workspace)
    require_knowledge()
    name = _named(name)
    values = dict(chunker_settings or {})
    validated_settings(chunker, values)
    try:
        with transaction.atomic():
            knowledge_base = KnowledgeBase.objects.create(
                workspace=workspace,
                name=name,
                description=legible(description).strip()[:500],
                restricted=restricted,
                chunker=chunker,
                chunker_settings=values,
                created_by=actor,
            )
            share(row=knowledge_base, subject=Subject(user=actor), level="manage", actor=actor)
            audit.record("base.made", who=actor, workspace_id=workspace.pk, target=knowledge_base, name=name)
    except IntegrityError as error:
        raise NameTaken(name=name) from error
    return knowledge_base


def change_knowledge_base(*, knowledge_base: KnowledgeBase, actor: User, **changes: str) -> None:
    """Change the ``name`` or ``description`` of a base that came through ``editable_by``.

    Raises:
        NameTaken: the workspace has another base of this name.
        InvalidInput: the name is empty.
    """
    if "name" in changes:
        changes["name"] = _named(changes["name"])
    if "description" in changes:
        changes["description"] = legible(changes["description"]).strip()[:500]
    try:
        with transaction.atomic():
            KnowledgeBase.objects.filter(pk=knowledge_base.pk).update(**changes)
            audit.did("base.changed", knowledge_base, who=actor, fields=sorted(changes))
    except IntegrityError as error:
        raise NameTaken(name=changes.get("name", "")) from error


def _named(name: str) -> str:
    if not legible(name).strip():
        raise InvalidInput(field="name", reason="it is empty")
    return display_name(name, limit=100)


@transaction.atomic
def delete_knowledge_base(*, knowledge_base: KnowledgeBase, actor: User) -> None:
    """Hide a base and all it holds from every door at once; the sweeper erases it when Undo has lapsed."""
    if KnowledgeBase.objects.filter(pk=knowledge_base.pk, deleted_at__isnull=True).update(deleted_at=timezone.now()):
        audit.did("base.deleted", knowledge_base, who=actor)


def grant(*, knowledge_base: KnowledgeBase, user: User, level: Level, actor: User) -> None:
    """Share a base with a member of its workspace; the new level replaces the old one.

    Raises:
        NotFound: the person is not in the workspace.
    """
    share(row=knowledge_base, subject=Subject(user=user), level=level, actor=actor)


def revoke(*, knowledge_base: KnowledgeBase, user: User, actor: User) -> None:
    """Take a person's grant on a base back."""
    for held in KnowledgeBaseShare.objects.filter(content_object=knowledge_base, user=user):
        unshare(share=held, actor=actor)
