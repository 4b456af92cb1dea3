"""Reads of knowledge: who may see which base, and through it which document and chunk."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from apps.common.text import storable
from apps.workspaces import rights
from apps.workspaces.doors import compiled
from apps.workspaces.principals import Principal, Who

if TYPE_CHECKING:
    from apps.knowledge.models import (
        Chunk,
        ChunkOverride,
        Document,
        DocumentImage,
        Folder,
        Job,
        KnowledgeBase,
        MetadataField,
        Synonyms,
    )

FAILED = ("error_parsing", "error_indexing")


class KnowledgeBaseQuerySet(models.QuerySet["KnowledgeBase"]):
    """Reads of knowledge bases."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep bases that ``who`` may read (``rights.read``)."""
        from apps.knowledge.models import KnowledgeBaseShare

        if settings.LITE:
            return self.none()
        return self.filter(rights.read(who, "knowledge:read", KnowledgeBaseShare), deleted_at__isnull=True)

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep bases that ``who`` may manage: upload, configure, delete, share."""
        from apps.knowledge.models import KnowledgeBaseShare

        if settings.LITE:
            return self.none()
        return self.filter(rights.manage(who, "knowledge:write", KnowledgeBaseShare), deleted_at__isnull=True)

    def with_counts(self, who: Who) -> Self:
        """Add ``document_count`` and ``ready_count`` of the documents that ``who`` may read; others do not exist."""
        from apps.knowledge.models import Document

        mine = Document.objects.visible_to(who).filter(knowledge_base=OuterRef("pk")).order_by()
        groups = mine.values("knowledge_base").annotate(all=Count("pk"), ready=Count("pk", filter=Q(status="indexed")))
        return self.annotate(
            document_count=Coalesce(Subquery(groups.values("all")), 0),
            ready_count=Coalesce(Subquery(groups.values("ready")), 0),
        )

    def with_rights(self, who: Who) -> Self:
        """Add ``editable``: whether ``who`` may manage the base."""
        from apps.knowledge.models import KnowledgeBase

        return self.annotate(editable=Exists(KnowledgeBase.objects.editable_by(who).filter(pk=OuterRef("pk"))))


class DocumentQuerySet(models.QuerySet["Document"]):
    """Reads of documents."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep documents that ``who`` may read: of readable bases, without those restricted to others.

        A restricted document, or one below a restricted folder, is read by those who manage its base
        and those whom each of these is shared with, as far as they may read the base.
        """
        from apps.knowledge.models import DocumentShare, Folder, KnowledgeBase

        principal = Principal.of(who)
        bases = KnowledgeBase.objects.visible_to(principal)
        unrestricted = Q(restricted=False) | Q(rights.granted(principal, DocumentShare))
        closed = Folder.objects.filter(_is_shut(principal)).order_by().values("pk")
        reached = unrestricted & (Q(folder=None) | ~Q(folder__in=closed))
        return self.filter(reached | _in_managed_bases(principal), knowledge_base__in=bases, deleted_at__isnull=True)

    def editable_by(self, who: Who, *, deleted: bool = False) -> Self:
        """Keep documents of the bases that ``who`` may manage; ``deleted``: those that Undo can bring back."""
        from apps.knowledge.models import KnowledgeBase

        bases = KnowledgeBase.objects.editable_by(who)
        return self.filter(knowledge_base__in=bases, deleted_at__isnull=not deleted)

    def with_rights(self, who: Who) -> Self:
        """Add ``editable``: whether ``who`` may change the document."""
        from apps.knowledge.models import Document

        return self.annotate(editable=Exists(Document.objects.editable_by(who).filter(pk=OuterRef("pk"))))

    def open_to_all(self) -> Self:
        """Keep documents that everybody in their workspace may read: nothing on the way to them is restricted."""
        from apps.knowledge.models import Folder

        shut = Folder.objects.filter(knowledge_base=OuterRef("knowledge_base"), restricted=True).order_by()
        below = Folder.objects.filter(pk=OuterRef("folder"), lineage__overlap=ArraySubquery(shut.values("pk")))
        return self.filter(~Exists(below), restricted=False, knowledge_base__restricted=False)

    def in_folders(self, folders: Iterable[UUID]) -> Self:
        """Keep documents in these folders and in all below them."""
        from apps.knowledge.models import Folder

        return self.filter(folder__in=Folder.objects.within(folders).order_by())

    def tagged(self, tags: Iterable[str]) -> Self:
        """Keep documents that have all of these tags."""
        return self.filter(tags__contains=[storable(tag) for tag in tags])

    def in_folder(self, folder: UUID | None) -> Self:
        """Keep documents that are in this very folder, None for the top."""
        return self.filter(folder=folder)

    def named(self, part: str) -> Self:
        """Keep documents whose name contains ``part``, in any case."""
        return self.filter(name__icontains=storable(part)) if part else self

    def in_state(self, group: str) -> Self:
        """Keep documents that are "open" (being worked on) or "failed"; any other word keeps all."""
        if group == "failed":
            return self.filter(status__in=FAILED)
        return self.exclude(status__in=("indexed", *FAILED)) if group == "open" else self

    def shown(self, *, name: str = "", state: str = "", tag: str = "", folder: "Folder | None" = None) -> Self:
        """Keep what the table of a base shows: one folder's own, or with a filter all that fit in it and below."""
        if not (name or state or tag):
            return self.in_folder(folder.pk if folder else None)
        found = self.named(name).in_state(state)
        if tag:
            found = found.tagged([tag])
        return found.in_folders([folder.pk]) if folder else found

    def among(self, ids: Sequence[str]) -> Self:
        """Keep documents with these ids; what is no UUID is ignored, and so is what comes after 100."""
        return self.filter(pk__in=[found for text in ids[:100] if (found := _uuid(text))])

    def with_changes(self) -> Self:
        """Add ``edited_passages`` and ``disabled_passages`` of those that people changed, and ``lost_changes``."""
        from apps.knowledge.models import ChunkOverride

        changes = ChunkOverride.objects.filter(document=OuterRef("pk")).order_by().values("document")
        kinds = {
            "edited_passages": changes.filter(applied=True).exclude(text=""),
            "disabled_passages": changes.filter(applied=True, disabled=True),
            "lost_changes": changes.filter(applied=False),
        }
        return self.annotate(
            **{name: Coalesce(Subquery(found.annotate(n=Count("pk")).values("n")), 0) for name, found in kinds.items()}
        )

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

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep chunks of the documents that ``who`` may read."""
        from apps.knowledge.models import Document

        return self.filter(document__in=Document.objects.visible_to(who))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep chunks of the documents that ``who`` may manage."""
        from apps.knowledge.models import Document

        return self.filter(document__in=Document.objects.editable_by(who))

    def holding(self, words: str) -> Self:
        """Keep chunks in which ``words`` stand, in any case; an empty text keeps all."""
        return self.filter(text__icontains=storable(words)) if words else self


class ChunkOverrideQuerySet(models.QuerySet["ChunkOverride"]):
    """Reads of people's changes to passages."""

    def editable_by(self, who: Who) -> Self:
        """Keep those in the documents that ``who`` may manage."""
        from apps.knowledge.models import Document

        return self.filter(document__in=Document.objects.editable_by(who))

    def in_use(self) -> Self:
        """Keep those whose passage the document has, which are the ones that reading it again may drop."""
        return self.filter(applied=True)

    def counts(self) -> dict[str, int]:
        """Return how many changed passages there are: ``total``, ``edited``, ``disabled``; one may be both.

        ``lost`` are those changes that the newest generation has no passage for; the others do not count them.
        """
        there = Q(applied=True)
        return self.aggregate(
            total=Count("pk", filter=there),
            edited=Count("pk", filter=there & ~Q(text="")),
            disabled=Count("pk", filter=there & Q(disabled=True)),
            lost=Count("pk", filter=~there),
        )


class FolderQuerySet(models.QuerySet["Folder"]):
    """Reads of folders."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep folders of the bases that ``who`` may read, without those shut to them."""
        from apps.knowledge.models import KnowledgeBase

        principal = Principal.of(who)
        bases = KnowledgeBase.objects.visible_to(principal)
        return self.filter(
            ~_is_shut(principal) | _in_managed_bases(principal), knowledge_base__in=bases, deleted_at__isnull=True
        )

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep folders of the bases that ``who`` may manage."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.editable_by(who), deleted_at__isnull=True)

    def named_by(self, text: str) -> Self:
        """Keep the folder with this id; none if it is no UUID."""
        found = _uuid(text)
        return self.filter(pk=found) if found else self.none()

    def within(self, folders: Iterable[UUID]) -> Self:
        """Keep these folders and all below them."""
        return self.filter(lineage__overlap=list(folders))


class MetadataFieldQuerySet(models.QuerySet["MetadataField"]):
    """Reads of the facts that bases keep of their documents."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep those of the bases that ``who`` may read."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.visible_to(who))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep those of the bases that ``who`` may manage."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.editable_by(who))


class SynonymsQuerySet(models.QuerySet["Synonyms"]):
    """Reads of words that mean the same."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep those of the workspaces that ``who`` is in."""
        return self.filter(workspace__in=rights.workspaces(who, "knowledge:read"))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep those of the workspaces that ``who`` owns or administers."""
        return self.filter(workspace__in=rights.workspaces(who, "knowledge:write", rights.MANAGERS))


class JobQuerySet(models.QuerySet["Job"]):
    """Reads of jobs."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep jobs that ``who`` began or whose base they manage, as far as they may read the base.

        A job tells names of documents, restricted ones among them.
        """
        from apps.knowledge.models import KnowledgeBase

        principal = Principal.of(who)
        own = Q(created_by=principal.user_id) if principal.user_id else rights.NOTHING  # NULL is the product's own
        theirs = own | _in_managed_bases(principal)
        return self.filter(theirs, knowledge_base__in=KnowledgeBase.objects.visible_to(principal))

    @compiled
    def editable_by(self, who: Who) -> Self:
        """Keep jobs of the bases that ``who`` may manage."""
        from apps.knowledge.models import KnowledgeBase

        return self.filter(knowledge_base__in=KnowledgeBase.objects.editable_by(who))

    def active(self) -> Self:
        """Keep jobs that have not ended."""
        return self.filter(status__in=("queued", "running"))


class DocumentImageQuerySet(models.QuerySet["DocumentImage"]):
    """Reads of images out of documents."""

    @compiled
    def visible_to(self, who: Who) -> Self:
        """Keep images of the documents that ``who`` may read."""
        from apps.knowledge.models import Document

        return self.filter(document__in=Document.objects.visible_to(who))


def _in_managed_bases(principal: Principal) -> Q:
    """Return the condition that one manages the base of a row, whatever one's scopes: then nothing in it is shut."""
    from apps.knowledge.models import KnowledgeBase, KnowledgeBaseShare

    if principal.user_id is None:
        return rights.NOTHING
    return Q(knowledge_base__in=KnowledgeBase.objects.filter(rights.manages(principal, KnowledgeBaseShare, "manage")))


def _is_shut(principal: Principal) -> Q:
    """Return the condition that a folder is restricted to others, or lies below one that is, for who only reads.

    Their ids are gathered once a statement (partial index ``folder_restricted``), what lies below
    them is found by ``folder_lineage``.
    """
    from apps.knowledge.models import Folder, FolderShare

    if principal.kind == "widget":
        reached = Folder.objects.filter(workspace=principal.workspace_id)
    else:
        reached = Folder.objects.filter(workspace__in=rights.memberships(principal).values("workspace"))
    shut = reached.filter(~Q(rights.granted(principal, FolderShare)), restricted=True)
    return Q(lineage__overlap=ArraySubquery(shut.order_by().values("pk")))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
