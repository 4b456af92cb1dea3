"""/documents/ and /chunks/."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from apps.knowledge import originals, services
from apps.knowledge.api.shapes import (
    ChangedPassageOut,
    ChangedPassageQuery,
    ChunkOut,
    ChunkQuery,
    ContentQuery,
    DocumentChange,
    DocumentOut,
    DocumentQuery,
)
from apps.knowledge.errors import OriginalMissing
from apps.knowledge.models import Chunk, ChunkOverride, Document, Folder, KnowledgeBase
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces import audit
from apps.workspaces.api.shapes import within
from apps.workspaces.services import set_restricted

READ, WRITE = "knowledge:read", "knowledge:write"


class Documents(ApiView):
    """Documents of all bases."""

    operations = {"GET": Operation(output=DocumentOut, query=DocumentQuery, many=True, scope=READ)}

    def on_get(self, request: Request) -> Response:
        """List the documents that you may read, the newest first."""
        asked = self.asked()
        found = Document.objects.visible_to(self.who).filter(**within(self)).named(asked.get("name", ""))
        exact = {name: asked[name] for name in ("knowledge_base", "status") if name in asked}
        return self.page(found.filter(**exact).with_changes())


class OneDocument(ApiView):
    """A document."""

    operations = {
        "GET": Operation(output=DocumentOut, scope=READ),
        "PATCH": Operation(input=DocumentChange, output=DocumentOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, document_id: UUID) -> Response:
        """Return a document and how far it is."""
        return self.answer(self.row(document_id))

    def rows(self) -> QuerySet[Document]:
        return Document.objects.visible_to(self.who)

    @transaction.atomic
    def on_patch(self, request: Request, document_id: UUID) -> Response:
        """Move a document, give it other tags or facts, or say that only those may read it whom it is shared with."""
        mine = Document.objects.editable_by(self.who)
        document, given = self.row(document_id, mine.select_related("knowledge_base")), self.taken()
        one: dict[str, Any] = {"knowledge_base": document.knowledge_base, "documents": mine.filter(pk=document.pk)}
        if "folder" in given:
            folders = Folder.objects.editable_by(self.who).filter(knowledge_base=document.knowledge_base)
            folder = self.row(given["folder"], folders) if given["folder"] else None
            services.move_documents(folder=folder, actor=self.who, **one)
        if "tags" in given:
            services.tag_documents(remove=document.tags, add=given["tags"], actor=self.who, **one)
        if "attributes" in given:
            services.describe_document(document=document, attributes=given["attributes"], actor=self.who)
        if "restricted" in given:
            set_restricted(row=document, restricted=given["restricted"], actor=self.who)
        return self.answer(self.row(document_id))

    def on_delete(self, request: Request, document_id: UUID) -> Response:
        """Delete a document. It is gone from every search at once."""
        document = self.row(document_id, Document.objects.editable_by(self.who))
        services.delete_document(document=document, actor=self.who)
        return self.done()


class ChangeDocument(ApiView):
    """An act on a document; the answer is the document after it."""

    operations = {"POST": Operation(output=DocumentOut, status=202, scope=WRITE)}
    service: ClassVar[Callable[..., object]]

    def rows(self) -> QuerySet[Document]:
        return Document.objects.editable_by(self.who)

    def on_post(self, request: Request, document_id: UUID) -> Response:
        """Carry it out."""
        document = self.row(document_id)
        type(self).service(document=document, actor=self.who)
        document.refresh_from_db()
        return self.answer(document)


class ParseDocument(ChangeDocument):
    """Read a settled document again from its original; its old text answers until the new one is in."""

    operations = ChangeDocument.operations
    service = services.reparse_document


class IndexDocument(ChangeDocument):
    """Cut and embed a document again, from the text it has."""

    operations = ChangeDocument.operations
    service = services.reindex_document


class CancelDocument(ChangeDocument):
    """Stop the work on a document: at once where it waits, else at the worker's next check."""

    operations = ChangeDocument.operations
    service = services.cancel_document


class ContentOfDocument(ApiView):
    """What is in a document."""

    operations = {
        "GET": Operation(query=ContentQuery, media_types=("text/markdown", "application/octet-stream"), scope=READ)
    }

    def on_get(self, request: Request, document_id: UUID) -> HttpResponseBase:
        """Return the text that was read from a document, as Markdown; or the file itself, as it was uploaded."""
        document = self.row(document_id, Document.objects.visible_to(self.who))
        try:
            whole = bool(self.asked().get("original"))
            response = originals.download(document) if whole else originals.text(document)
        except FileNotFoundError as error:
            raise OriginalMissing from error
        audit.opened(document, who=self.who, action="document.downloaded" if whole else "document.opened")
        return response


class ChangedPassagesOfBase(ApiView):
    """Passages that people edited or disabled."""

    operations = {
        "GET": Operation(
            output=ChangedPassageOut,
            query=ChangedPassageQuery,
            many=True,
            order=("-changed_at", "pk"),
            scope=READ,
        )
    }

    def on_get(self, request: Request, base_id: UUID) -> Response:
        """List passages of a base that you manage which were edited or disabled, the last changed first.

        Reading or indexing a document again keeps those whose original text it cuts again, and drops the others.
        """
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        found = ChunkOverride.objects.editable_by(self.who).in_use().filter(document__knowledge_base=base)
        answer = self.page(found.filter(**self.asked()))
        shown = {row["document"] for row in answer.data["results"]}
        documents = Document.objects.visible_to(self.who).select_related("knowledge_base", "folder")
        audit.opened_all(documents.filter(pk__in=shown), who=self.who, passages=len(answer.data["results"]))
        return answer


class _Passages(ApiView):
    def _told(self, answer: Response, documents: Iterable[Document]) -> Response:
        """Write into the log whose documents' passages an answer shows."""
        audit.opened_all(documents, who=self.who, passages=len(answer.data["results"]))
        return answer


class ChunksOfDocument(_Passages):
    """The passages of a document."""

    operations = {"GET": Operation(output=ChunkOut, many=True, order=("ordinal", "pk"), scope=READ)}

    def on_get(self, request: Request, document_id: UUID) -> Response:
        """List the passages of a document, in reading order."""
        document = self.row(document_id, Document.objects.visible_to(self.who))
        return self._told(self.page(_passages(self.who).filter(document=document)), [document])


class Chunks(_Passages):
    """Passages of all documents."""

    operations = {"GET": Operation(output=ChunkOut, query=ChunkQuery, many=True, order=("pk",), scope=READ)}

    def on_get(self, request: Request) -> Response:
        """List passages of the documents that you may read."""
        answer = self.page(_passages(self.who).filter(**self.asked()))
        shown = {row["document"] for row in answer.data["results"]}
        documents = Document.objects.visible_to(self.who).select_related("knowledge_base", "folder")
        return self._told(answer, documents.filter(pk__in=shown))


class OneChunk(ApiView):
    """A passage."""

    operations = {"GET": Operation(output=ChunkOut, scope=READ)}

    def on_get(self, request: Request, chunk_id: UUID) -> Response:
        """Return a passage, as answers cite it."""
        chunk = self.row(chunk_id, _passages(self.who).select_related("document__knowledge_base", "document__folder"))
        audit.opened(chunk.document, who=self.who, action="passage.opened", passage=str(chunk.pk))
        return self.answer(chunk)


def _passages(who: Any) -> QuerySet[Chunk]:
    """Return the passages that may be read; those that were switched off are for who may switch them on again."""
    found = Q(disabled=False) | Q(document__in=Document.objects.editable_by(who))
    return Chunk.objects.visible_to(who).filter(found, level=Chunk.PARENT)
