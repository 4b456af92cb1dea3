"""Reads of knowledge: who may see which base, and through it which document and chunk."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Count, Exists, OuterRef, Q

from apps.common.text import storable
from apps.workspaces.models import Membership, Role, User

if TYPE_CHECKING:
    from apps.knowledge.models import Chunk, Document, DocumentImage, Folder, Job, KnowledgeBase

READ_GRANTS = ("read_knowledgebase", "manage_knowledgebase")
MANAGE_GRANTS = ("manage_knowledgebase",)
FAILED = ("error_parsing", "error_indexing")


class KnowledgeBaseQuerySet(models.QuerySet["KnowledgeBase"]):
    """Reads of knowledge bases."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep bases that ``user`` may read.

        Members of the workspace read its open bases; owners, admins and holders of a grant also its
        restricted ones. A grant counts only while its holder is in the workspace. Staff get no
        shortcut. Subqueries rather than joins, so a base with three grants is still one row.
        """
        if not user.is_authenticated:
            return self.none()
        member = Exists(_memberships(user))
        manager = Exists(_memberships(user).filter(role__in=[Role.OWNER, Role.ADMIN]))
        granted = Exists(self._grants(user, READ_GRANTS))
        return self.filter(member, Q(restricted=False) | manager | granted, deleted_at__isnull=True)

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep bases that ``user`` may manage: upload, configure, delete, share."""
        if not user.is_authenticated:
            return self.none()
        manager = Exists(_memberships(user).filter(role__in=[Role.OWNER, Role.ADMIN]))
        member = Exists(_memberships(user))
        granted = Exists(self._grants(user, MANAGE_GRANTS))
        return self.filter(Q(manager) | (Q(member) & Q(granted)), deleted_at__isnull=True)

    def with_counts(self) -> Self:
        """Add ``document_count`` and ``ready_count``, both without deleted documents."""
        alive = Q(documents__deleted_at__isnull=True)
        ready = alive & Q(documents__status="indexed")
        return self.annotate(
            document_count=Count("documents", filter=alive), ready_count=Count("documents", filter=ready)
        )

    def with_rights(self, user: User | AnonymousUser) -> Self:
        """Add ``editable``: whether ``user`` may manage the base."""
        from apps.knowledge.models import KnowledgeBase

        return self.annotate(editable=Exists(KnowledgeBase.objects.editable_by(user).filter(pk=OuterRef("pk"))))

    @staticmethod
    def _grants(user: User, codenames: tuple[str, ...]) -> models.QuerySet[models.Model]:
        from apps.knowledge.models import KnowledgeBaseUserPermission

        grants: models.QuerySet[models.Model] = KnowledgeBaseUserPermission.objects.filter(
            content_object=OuterRef("pk"), user_id=user.pk, permission__codename__in=codenames
        )
        return grants


class DocumentQuerySet(models.QuerySet["Document"]):
    """Reads of documents."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep documents of the bases that ``user`` may read."""
        from apps.knowledge.models import KnowledgeBase

        bases = KnowledgeBase.objects.visible_to(user)
        return self.filter(knowledge_base__in=bases, deleted_at__isnull=True)

    def editable_by(self, user: User | AnonymousUser, *, deleted: bool = False) -> Self:
        """Keep documents of the bases that ``user`` may manage; ``deleted``: those that Undo can bring back."""
        from apps.knowledge.models import KnowledgeBase

        bases = KnowledgeBase.objects.editable_by(user)
        return self.filter(knowledge_base__in=bases, deleted_at__isnull=not deleted)

    def in_folders(self, folders: Iterable[UUID]) -> Self:
        """Keep documents in these folders and in all below them."""
        from apps.knowledge.models import Folder

        return self.filter(folder__in=Folder.objects.within(folders).order_by())

    def tagged(self, tags: Iterable[str]) -> Self:
        """Keep documents that have all of these tags."""
        return self.filter(tags__contains=[storable(tag) for tag in tags])

    def named(self, part: str) -> Self:
        """Keep documents whose name contains ``part``, in any case."""
        return self.filter(name__icontains=storable(part)) if part else self

    def in_state(self, group: str) -> Self:
        """Keep documents that are "open" (being worked on) or "failed"; any other word keeps all."""
        if group == "failed":
            return self.filter(status__in=FAILED)
        return self.exclude(status__in=("indexed", *FAILED)) if group == "open" else self

    def among(self, ids: Sequence[str]) -> Self:
        """Keep documents with these ids; what is no UUID is ignored, and so is what comes after 100."""
        return self.filter(pk__in=[found for text in ids[:100] if (found := _uuid(text))])

    def counts(self) -> dict[str, int]:
        """Return how many there are: ``total``, ``ready``, ``failed`` and ``open`` (being worked on)."""
        counted: dict[str, int] = self.aggregate(
            total=Count("pk"),
            ready=Count("pk", filter=Q(status="indexed")),
            failed=Count("pk", filter=Q(status__in=FAILED)),
        )
        return {**counted, "open": counted["total"] - counted["ready"] - counted["failed"]}


class ChunkQuerySet(models.QuerySet["Chunk"]):
    """Reads of chunks."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep chunks of the documents that ``user`` may read."""
        from apps.knowledge.models import Document

        return self.filter(document__in=Document.objects.visible_to(user))

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep chunks of the documents that ``user`` may manage."""
        from apps.knowledge.models import Document

        return self.filter(document__in=Document.objects.editable_by(user))


class FolderQuerySet(models.QuerySet["Folder"]):
    """Reads of folders."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep folders of the bases that ``user`` may read."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.visible_to(user))

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep folders of the bases that ``user`` may manage."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.editable_by(user))

    def within(self, folders: Iterable[UUID]) -> Self:
        """Keep these folders and all below them."""
        return self.filter(lineage__overlap=list(folders))


class JobQuerySet(models.QuerySet["Job"]):
    """Reads of jobs."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep jobs of the bases that ``user`` may read."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.visible_to(user))

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Keep jobs of the bases that ``user`` may manage."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.editable_by(user))

    def active(self) -> Self:
        """Keep jobs that have not ended."""
        return self.filter(status__in=("queued", "running"))


class DocumentImageQuerySet(models.QuerySet["DocumentImage"]):
    """Reads of images out of documents."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep images of the documents that ``user`` may read."""
        from apps.knowledge.models import Document

        return self.filter(document__in=Document.objects.visible_to(user))


def _memberships(user: User) -> models.QuerySet[Membership]:
    return Membership.objects.filter(workspace=OuterRef("workspace"), user_id=user.pk, user__is_active=True)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
