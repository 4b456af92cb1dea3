"""Folders: made, renamed, moved, deleted with what is in them."""

from collections.abc import Sequence
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.common.errors import InvalidInput
from apps.common.text import display_name, legible
from apps.knowledge.errors import FolderNameTaken, FolderRefused
from apps.knowledge.models import Folder, Job, KnowledgeBase
from apps.knowledge.services import batches
from apps.workspaces import audit
from apps.workspaces.models import User


def create_folder(*, knowledge_base: KnowledgeBase, name: str, actor: User, parent: Folder | None = None) -> Folder:
    """Create a folder at the top of a base or in another one.

    Raises:
        InvalidInput: no name. FolderNameTaken, FolderRefused: there is one, or it would be too deep.
    """
    folder = Folder(
        workspace_id=knowledge_base.workspace_id,
        knowledge_base=knowledge_base,
        parent=parent,
        name=_name(name),
        created_by=actor,
    )
    folder.lineage = [*(parent.lineage if parent else []), folder.pk]
    if len(folder.lineage) > Folder.DEEPEST:
        raise FolderRefused(deepest=Folder.DEEPEST, field="parent", reason="")
    with _unique(folder.name), transaction.atomic():
        folder.save(force_insert=True)
        audit.did("folder.made", folder, who=actor)
    return folder


def folder_at(
    *, knowledge_base: KnowledgeBase, path: Sequence[str], actor: User, above: Folder | None = None
) -> Folder | None:
    """Return the folder at a path of names from ``above`` or the top, making what is missing.

    Two uploads that make the same folder at once get the same one.
    """
    folder = above
    for name in path:
        there = Folder.objects.filter(
            knowledge_base=knowledge_base, parent=folder, name=_name(name), deleted_at__isnull=True
        )
        found = there.first()
        if found is None:
            try:
                found = create_folder(knowledge_base=knowledge_base, name=name, actor=actor, parent=folder)
            except FolderNameTaken:
                found = there.get()
        folder = found
    return folder


def rename_folder(*, folder: Folder, name: str, actor: User) -> None:
    """Give a folder another name.

    Raises:
        InvalidInput: no name. FolderNameTaken: its neighbour has it.
    """
    folder.name = _name(name)
    with _unique(folder.name), transaction.atomic():
        folder.save(update_fields=["name"])
        audit.did("folder.renamed", folder, who=actor)


def move_folder(*, folder: Folder, parent: Folder | None, actor: User) -> None:
    """Put a folder with all below it into another one of the base, None for the top.

    Raises:
        FolderRefused: into itself or what is below it, into another base, or too deep.
        FolderNameTaken: there is one of its name there.
    """
    refused = FolderRefused(deepest=Folder.DEEPEST, field="parent", reason="")
    if parent and (parent.knowledge_base_id != folder.knowledge_base_id or folder.pk in parent.lineage):
        raise refused
    with _unique(folder.name), transaction.atomic():
        below = list(
            Folder.objects.select_for_update().filter(knowledge_base_id=folder.knowledge_base_id).within([folder.pk])
        )
        above: list[UUID] = list(parent.lineage) if parent else []
        for one in below:
            one.lineage = above + one.lineage[one.lineage.index(folder.pk) :]
            if len(one.lineage) > Folder.DEEPEST:
                raise refused
        Folder.objects.filter(pk=folder.pk).update(parent=parent)
        Folder.objects.bulk_update(below, ["lineage"])
        audit.did("folder.moved", folder, who=actor)
    folder.refresh_from_db()


@transaction.atomic
def delete_folder(*, folder: Folder, actor: User) -> Job:
    """Hide a folder with all below it and every document in them at once; Undo is that of the job."""
    below = Folder.objects.filter(knowledge_base_id=folder.knowledge_base_id, deleted_at__isnull=True)
    below = below.within([folder.pk])
    ids = list(below.values_list("pk", flat=True))
    job = batches.delete_documents(
        knowledge_base=folder.knowledge_base,
        documents=batches.alive(folder.knowledge_base).filter(folder__in=ids),
        actor=actor,
        folders=ids,
    )
    below.update(deleted_at=timezone.now())
    audit.did("folder.deleted", folder, who=actor)
    return job


def _name(name: str) -> str:
    if not legible(name).strip(" ."):
        raise InvalidInput(field="name", reason="it is empty")
    return display_name(name, limit=200)


class _unique:  # noqa: N801
    """Translate the constraint's refusal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, IntegrityError):
            raise FolderNameTaken(name=self.name) from error
