"""/knowledge-bases/ and what is below them."""

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from apps.common.database import wait_for
from apps.knowledge import services
from apps.knowledge.api.shapes import (
    DocumentOut,
    FileIn,
    KnowledgeBaseChange,
    KnowledgeBaseIn,
    KnowledgeBaseOut,
    SearchIn,
    SearchOut,
)
from apps.knowledge.models import Document, Folder, KnowledgeBase
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.search import search
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces import audit
from apps.workspaces.api.shapes import InWorkspace, entered, within
from apps.workspaces.api.shares import OneShareOfRow, SharesOfRow
from apps.workspaces.services import set_restricted

READ, WRITE = "knowledge:read", "knowledge:write"


class KnowledgeBases(ApiView):
    """Knowledge bases: documents that are searched together."""

    operations = {
        "GET": Operation(output=KnowledgeBaseOut, query=InWorkspace, many=True, scope=READ),
        "POST": Operation(input=KnowledgeBaseIn, output=KnowledgeBaseOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[KnowledgeBase]:
        return KnowledgeBase.objects.visible_to(self.who).with_rights(self.who)

    def on_get(self, request: Request) -> Response:
        """List the bases that you may read, the newest first."""
        return self.page(self.rows().filter(**within(self)))

    def on_post(self, request: Request) -> Response:
        """Create an empty base; you may manage it."""
        given = self.taken()
        workspace = entered(self, given.pop("workspace", None))
        made = services.create_knowledge_base(workspace=workspace, actor=self.who, **given)
        return self.answer(self.row(made.pk))


class OneKnowledgeBase(ApiView):
    """A knowledge base."""

    operations = {
        "GET": Operation(output=KnowledgeBaseOut, scope=READ),
        "PATCH": Operation(input=KnowledgeBaseChange, output=KnowledgeBaseOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def rows(self) -> QuerySet[KnowledgeBase]:
        return KnowledgeBase.objects.visible_to(self.who).with_rights(self.who)

    def on_get(self, request: Request, base_id: UUID) -> Response:
        """Return a base."""
        return self.answer(self.row(base_id))

    @transaction.atomic
    def on_patch(self, request: Request, base_id: UUID) -> Response:
        """Change a base that you may manage: its name, who may read it, how its documents are cut."""
        base, given = self.row(base_id, KnowledgeBase.objects.editable_by(self.who)), self.taken()
        if words := {name: given[name] for name in ("name", "description") if name in given}:
            services.change_knowledge_base(knowledge_base=base, actor=self.who, **words)
        if "restricted" in given:
            set_restricted(row=base, restricted=given["restricted"], actor=self.who)
        if "chunker" in given or "chunker_settings" in given:
            chunker = given.get("chunker", base.chunker)
            kept = base.chunker_settings if chunker == base.chunker else {}
            wanted = given.get("chunker_settings", kept)
            services.configure_chunker(knowledge_base=base, chunker=chunker, chunker_settings=wanted, actor=self.who)
        return self.answer(self.row(base_id))

    def on_delete(self, request: Request, base_id: UUID) -> Response:
        """Delete a base with everything in it. It is gone from every search at once."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        services.delete_knowledge_base(knowledge_base=base, actor=self.who)
        return self.done()


class DocumentsOfBase(ApiView):
    """The documents of a base."""

    operations = {
        "GET": Operation(output=DocumentOut, many=True, scope=READ),
        "POST": Operation(input=FileIn, output=DocumentOut, status=201, files=True, scope=WRITE),
    }

    def rows(self) -> QuerySet[Document]:
        return Document.objects.visible_to(self.who)

    def on_get(self, request: Request, base_id: UUID) -> Response:
        """List the documents of a base, the newest first."""
        base = self.row(base_id, KnowledgeBase.objects.visible_to(self.who))
        mine = Document.objects.visible_to(self.who)
        return self.page(mine.filter(knowledge_base=base).with_changes())

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Upload a file, as a form with the part `file`; it is read and indexed in the background.

        The same bytes again give the document that is there already.
        """
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        given = self.taken()
        file, folder = given.pop("file"), given.pop("folder", None)
        if folder:
            folder = self.row(folder, Folder.objects.editable_by(self.who).filter(knowledge_base=base))
        document = services.add_document(
            knowledge_base=base, file=file, name=file.name or "", folder=folder, actor=self.who, **given
        )
        return self.answer(document)


class SearchBase(ApiView):
    """The search of a base."""

    operations = {"POST": Operation(input=SearchIn, output=SearchOut, changes=False, scope=READ)}

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Find the passages that answer a question or hold its words, the best first.

        It is the very search that answers stand on, with your rights at this moment.
        """
        base = self.row(base_id, KnowledgeBase.objects.visible_to(self.who))
        given = self.taken()
        filters = [Filters.of(given.pop("filters", {}))]
        result = wait_for(search, self.who, given.pop("query"), knowledge_bases=[base.pk], filters=filters, **given)
        audit.opened(base, who=self.who, action="base.searched", passages=len(result.passages))
        return self.answer(result)


class SharesOfBase(SharesOfRow):
    """Who may read or manage a base besides the owners and admins of its workspace."""

    operations = SharesOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[KnowledgeBase]:
        return KnowledgeBase.objects.editable_by(self.who)


class OneShareOfBase(OneShareOfRow):
    """A share of a base."""

    operations = OneShareOfRow.operations_with(WRITE)

    def shared(self) -> QuerySet[KnowledgeBase]:
        return KnowledgeBase.objects.editable_by(self.who)
