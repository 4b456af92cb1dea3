"""/folders/ and /jobs/: documents in order, and acts on many of them."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from apps.knowledge import services
from apps.knowledge.api.shapes import (
    EmbeddingIn,
    FolderChange,
    FolderIn,
    FolderOut,
    JobIn,
    JobOut,
    JobQuery,
    MetadataFieldIn,
    MetadataFieldOut,
)
from apps.knowledge.models import Document, Folder, Job, KnowledgeBase, MetadataField
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.api.shapes import within
from apps.workspaces.services import set_restricted

READ, WRITE = "knowledge:read", "knowledge:write"


class FoldersOfBase(ApiView):
    """The folders of a base."""

    operations = {
        "GET": Operation(output=FolderOut, many=True, scope=READ),
        "POST": Operation(input=FolderIn, output=FolderOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[Folder]:
        return Folder.objects.visible_to(self.who)

    def on_get(self, request: Request, base_id: UUID) -> Response:
        """List the folders of a base, those in folders too."""
        base = self.row(base_id, KnowledgeBase.objects.visible_to(self.who))
        return self.page(self.rows().filter(knowledge_base=base))

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Make a folder."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        given = self.taken()
        mine = Folder.objects.editable_by(self.who).filter(knowledge_base=base)
        parent = self.row(given["parent"], mine) if given.get("parent") else None
        made = services.create_folder(knowledge_base=base, name=given["name"], parent=parent, actor=self.who)
        return self.answer(made)


class OneFolder(ApiView):
    """A folder."""

    operations = {
        "GET": Operation(output=FolderOut, scope=READ),
        "PATCH": Operation(input=FolderChange, output=FolderOut, scope=WRITE),
        "DELETE": Operation(output=JobOut, status=202, scope=WRITE),
    }

    def rows(self) -> QuerySet[Any]:
        if self.request.method == "DELETE":
            return Job.objects.visible_to(self.who)
        return Folder.objects.visible_to(self.who)

    def on_get(self, request: Request, folder_id: UUID) -> Response:
        """Return a folder."""
        return self.answer(self.row(folder_id))

    def on_patch(self, request: Request, folder_id: UUID) -> Response:
        """Rename or move a folder with all that is in it, or say that only those may read it whom it is shared with."""
        mine = Folder.objects.editable_by(self.who)
        folder, given = self.row(folder_id, mine), self.taken()
        if "name" in given:
            services.rename_folder(folder=folder, name=given["name"], actor=self.who)
        if "parent" in given:
            parent = self.row(given["parent"], mine) if given["parent"] else None
            services.move_folder(folder=folder, parent=parent, actor=self.who)
        if "restricted" in given:
            set_restricted(row=folder, restricted=given["restricted"], actor=self.who)
        return self.answer(self.row(folder_id, mine))

    def on_delete(self, request: Request, folder_id: UUID) -> Response:
        """Delete a folder with all folders and documents in it."""
        folder = self.row(folder_id, Folder.objects.editable_by(self.who).select_related("knowledge_base"))
        return self.answer(services.delete_folder(folder=folder, actor=self.who))


class FieldsOfBase(ApiView):
    """The facts that a base keeps of its documents."""

    operations = {
        "GET": Operation(output=MetadataFieldOut, many=True, scope=READ),
        "POST": Operation(input=MetadataFieldIn, output=MetadataFieldOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[MetadataField]:
        return MetadataField.objects.visible_to(self.who)

    def on_get(self, request: Request, base_id: UUID) -> Response:
        """List the fields of a base."""
        base = self.row(base_id, KnowledgeBase.objects.visible_to(self.who))
        return self.page(self.rows().filter(knowledge_base=base))

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Have a base keep another fact."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        given = self.taken()
        made = services.add_metadata_field(
            knowledge_base=base,
            key=given["key"],
            of_type=given["type"],
            choices=given.get("choices", ()),
            actor=self.who,
        )
        return self.answer(made)


class OneField(ApiView):
    """A fact that a base keeps."""

    operations = {"GET": Operation(output=MetadataFieldOut, scope=READ), "DELETE": Operation(status=204, scope=WRITE)}

    def on_get(self, request: Request, field_id: UUID) -> Response:
        """Return a field."""
        return self.answer(self.row(field_id, MetadataField.objects.visible_to(self.who)))

    def on_delete(self, request: Request, field_id: UUID) -> Response:
        """Keep a fact no more; what it is of each document goes with it."""
        field = self.row(field_id, MetadataField.objects.editable_by(self.who))
        services.delete_metadata_field(field=field, actor=self.who)
        return self.done()


class ModelOfBase(ApiView):
    """The embedding model of a base, changed."""

    operations = {
        "POST": Operation(input=EmbeddingIn, output=JobOut, status=202, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def rows(self) -> QuerySet[Job]:
        return Job.objects.visible_to(self.who)

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Embed all passages anew, in the background; with the last one search is switched over at once."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        return self.answer(services.move_to_model(knowledge_base=base, model=self.taken()["model"], actor=self.who))

    def on_delete(self, request: Request, base_id: UUID) -> Response:
        """Put a move that failed away, with what it had embedded; the base stays with its model."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        services.dismiss_move(knowledge_base=base, actor=self.who)
        return self.done()


class JobsOfBase(ApiView):
    """Acts on many documents of a base."""

    operations = {"POST": Operation(input=JobIn, output=JobOut, status=201, scope=WRITE)}

    def rows(self) -> QuerySet[Job]:
        return Job.objects.visible_to(self.who)

    def on_post(self, request: Request, base_id: UUID) -> Response:
        """Read, index or try documents again, in the background."""
        base = self.row(base_id, KnowledgeBase.objects.editable_by(self.who))
        given = self.taken()
        documents = Document.objects.editable_by(self.who).filter(knowledge_base=base)
        if "documents" in given:
            documents = documents.filter(pk__in=given["documents"])
        made = services.start_job(
            knowledge_base=base, kind=Job.Kind(given["kind"]), documents=documents, actor=self.who
        )
        return self.answer(made)


class Jobs(ApiView):
    """Acts on many documents that you began, or in bases that you manage."""

    operations = {"GET": Operation(output=JobOut, query=JobQuery, many=True, scope=READ)}

    def on_get(self, request: Request) -> Response:
        """List jobs, the newest first."""
        asked = self.asked()
        exact = {"knowledge_base": asked["knowledge_base"]} if "knowledge_base" in asked else {}
        return self.page(Job.objects.visible_to(self.who).filter(**within(self), **exact))


class OneJob(ApiView):
    """A job."""

    operations = {"GET": Operation(output=JobOut, scope=READ)}

    def on_get(self, request: Request, job_id: UUID) -> Response:
        """Return a job and how far it has come."""
        return self.answer(self.row(job_id, Job.objects.visible_to(self.who)))


class CancelJob(ApiView):
    """The end of a job before its own."""

    operations = {"POST": Operation(output=JobOut, status=202, scope=WRITE)}

    def rows(self) -> QuerySet[Job]:
        return Job.objects.editable_by(self.who)

    def on_post(self, request: Request, job_id: UUID) -> Response:
        """Stop a job: what is not begun is left, what is begun is stopped as a document is."""
        services.cancel_job(job=self.row(job_id), actor=self.who)
        return self.answer(self.row(job_id))


class RetryJob(ApiView):
    """Another try at what failed."""

    operations = {"POST": Operation(output=JobOut, status=201, scope=WRITE)}

    def rows(self) -> QuerySet[Job]:
        return Job.objects.editable_by(self.who)

    def on_post(self, request: Request, job_id: UUID) -> Response:
        """Try the documents of a job that failed again; the answer is the new job."""
        job = self.row(job_id, self.rows().select_related("knowledge_base"))
        return self.answer(services.retry_job(job=job, actor=self.who))
