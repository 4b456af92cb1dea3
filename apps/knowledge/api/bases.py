"""/knowledge-bases/ and what is below them."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from apps.common.errors import NotFound
from apps.knowledge import services
from apps.knowledge.api.shapes import (
    DocumentOut,
    FileIn,
    KnowledgeBaseIn,
    KnowledgeBaseOut,
    SearchIn,
    SearchOut,
    ShareIn,
    ShareOut,
)
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.retrieval.search import search
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import InWorkspace, entered, within
from apps.workspaces.models import Membership

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
        made = services.create_knowledge_base(workspace=workspace, actor=self.actor, **given)
        return self.answer(self.row(made.pk))


class OneKnowledgeBase(ApiView):
    """A knowledge base."""

    operations = {
        "GET": Operation(output=KnowledgeBaseOut, scope=READ),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, base_id: UUID) -> Response:
        """Return a base."""
        return self.answer(self.row(base_id, KnowledgeBase.objects.visible_to(self.who).with_rights(self.who)))

    def on_delete(self, request: Request, base_id: UUID) -> Response:
        """Delete a base with everything in it. It is gone from every search at once."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        services.delete_knowledge_base(knowledge_base=base, actor=self.actor)
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
        return self.page(self.rows().filter(knowledge_base=base))

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Upload a file, as a form with the part `file`; it is read and indexed in the background.

        The same bytes again give the document that is there already.
        """
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        file = self.taken()["file"]
        document = services.add_document(knowledge_base=base, file=file, name=file.name or "", actor=self.actor)
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
        result = async_to_sync(search)(self.who, given.pop("query"), knowledge_bases=[base.pk], **given)
        return self.answer(result)


class SharesOfBase(ApiView):
    """Who may read or manage a base besides the owners and admins of its workspace."""

    operations = {
        "GET": Operation(output=ShareOut, many=True, order=("pk",), scope=WRITE),
        "POST": Operation(input=ShareIn, output=ShareOut, status=201, scope=WRITE),
    }

    def on_get(self, request: Request, base_id: UUID) -> Response:
        """List the shares of a base that you may manage."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        return self.page(base.shares.filter(user__isnull=False).select_related("user", "permission"))

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Share a base with a member of its workspace, or change what they may do."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        given = self.taken()
        members = Membership.objects.visible_to(self.who).filter(workspace=base.workspace_id, user=given["user"])
        member = members.select_related("user").first()
        if member is None:
            raise NotFound(field="user")
        services.grant(knowledge_base=base, user=member.user, level=given["level"], actor=self.actor)
        return self.answer(
            base.shares.filter(user__isnull=False).select_related("user", "permission").get(user=member.user)
        )

    def _again(self, written: str, status: int, **kwargs: Any) -> Response:
        base = self.row(kwargs["base_id"], KnowledgeBase.objects.editable_by(self.who))
        return Response(
            self.shown(self.row(written, base.shares.filter(user__isnull=False).select_related("user", "permission"))),
            status,
        )


class OneShare(ApiView):
    """A person's share of a base."""

    operations = {"DELETE": Operation(status=204, scope=WRITE)}

    def on_delete(self, request: Request, base_id: UUID, user_id: UUID) -> Response:
        """Take a person's share back. It takes effect at once, also in a running answer."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        share = base.shares.filter(user__isnull=False).select_related("user").filter(user=user_id).first()
        if share is None:
            raise NotFound
        services.revoke(knowledge_base=base, user=share.user, actor=self.actor)
        return self.done()
