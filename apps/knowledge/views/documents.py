"""Pages of documents: upload, reading with a passage highlighted, the original, retry, delete."""

import contextlib
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

from apps.common.errors import InvalidInput, KnowSphereError, NotFound
from apps.common.text import whole
from apps.knowledge import originals, page_pictures, services, sheets
from apps.knowledge.errors import OriginalMissing, SameName
from apps.knowledge.models import Document, DocumentImage, Folder, KnowledgeBase
from apps.knowledge.services.beginning import begin_knowledge_base
from apps.knowledge.views.changes import ask_first
from apps.workspaces import audit
from apps.workspaces.pages import PersonRequest, enter


@require_POST
@login_required
def upload_documents(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Take files into a base."""
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return _take(request, frame, get_object_or_404(bases.with_rights(request.user), pk=base_id))


@require_POST
@login_required
def upload_first(request: PersonRequest, slug: str) -> HttpResponse:
    """Take somebody's first files into the base that they begin with, making it if there is none."""
    frame = enter(request, slug)
    base = begin_knowledge_base(workspace=frame["workspace"], actor=request.user)
    return _take(request, frame, base)


def _take(request: PersonRequest, frame: dict[str, Any], base: KnowledgeBase) -> HttpResponse:
    """Add one file a request from the page's script, any number from the plain form."""
    slug = frame["workspace"].slug
    files = cast("list[UploadedFile[bytes]]", request.FILES.getlist("file"))
    if not files:
        raise InvalidInput(field="file", reason=_("no file arrived. Choose one and try again."))
    options = _options(request, base, len(files))
    added = []
    for file in files:
        try:
            added.append(
                services.add_document(
                    knowledge_base=base, file=file, name=file.name or "", actor=request.user, **options
                )
            )
        except KnowSphereError as error:
            if options["job"] and not isinstance(error, SameName):
                services.note_received(options["job"], stored=False)
            raise
        if options["job"]:
            services.note_received(options["job"], stored=True)
    if "application/json" in request.headers.get("Accept", ""):
        row = {**frame, "base": base, "document": added[0]}
        html = render_to_string("knowledge/partials/_document_row.html", row, request)
        page = reverse("knowledge:show-knowledge-base", args=[slug, base.pk])
        return JsonResponse({"id": str(added[0].pk), "row": html, "page": page}, status=201)
    count = len(added)
    messages.success(request, ngettext("%(count)s file added.", "%(count)s files added.", count) % {"count": count})
    return redirect("knowledge:show-knowledge-base", slug, base.pk)


def _options(request: PersonRequest, base: KnowledgeBase, count: int) -> dict[str, Any]:
    """Return what goes with a file of an upload: its folder, its batch, what becomes of another of its name."""
    posted = request.POST
    folders = Folder.objects.editable_by(request.user).filter(knowledge_base=base)
    folder = get_object_or_404(folders.named_by(posted["folder"])) if posted.get("folder") else None
    names = [name for name in posted.get("path", "").split("/")[:-1] if name.strip(" .")]
    if names:
        folder = services.folder_at(knowledge_base=base, path=names, actor=request.user, above=folder)
    job = None
    with contextlib.suppress(ValueError):
        batch = UUID(posted.get("batch", ""))
        total = whole(posted.get("batch_total", "")) or count
        job = services.join_upload(knowledge_base=base, batch=batch, total=total, actor=request.user)
    same = posted.get("if_same_name", "keep")
    return {"folder": folder, "job": job, "if_same_name": same if same in ("ask", "replace") else "keep"}


@require_safe
@login_required
def show_document(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Show a document's text, with the passage of ``chunk`` (or ``start`` and ``end``) highlighted."""
    frame = enter(request, slug)
    documents = Document.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents.select_related("knowledge_base"), pk=document_id)
    asked = {name: request.GET.get(name, "") for name in ("chunk", "start", "end", "first")}
    sheet = sheets.open_at(document, **asked)
    audit.opened(document, who=request.user)
    editable = Document.objects.editable_by(request.user).filter(pk=document.pk).exists()
    context = {"document": document, "base": document.knowledge_base, "sheet": sheet, "editable": editable}
    context["counts"] = document.overrides.counts() if editable else {}
    context["attempts"] = document.attempts.order_by("-number")[:20]
    return render(request, "knowledge/show_document.html", {**frame, **context, "section": "knowledge"})


@require_safe
@login_required
def download_original(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponseBase:
    """Send the file as it was uploaded, always as a download and never as a page of ours."""
    frame = enter(request, slug)
    documents = Document.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents, pk=document_id)
    try:
        response = originals.download(document)
        audit.opened(document, who=request.user, action="document.downloaded")
        return response
    except FileNotFoundError as error:
        raise OriginalMissing from error


@require_safe
@login_required
def show_picture(request: PersonRequest, slug: str, document_id: UUID, name: str) -> HttpResponseBase:
    """Send a picture out of a document to whoever may read the document."""
    frame = enter(request, slug)
    images = DocumentImage.objects.visible_to(request.user).filter(document__workspace=frame["workspace"])
    # Of the generation that answers; the one in the making only while there is no other.
    found = images.filter(document=document_id, name=name).order_by("generation").first()
    if found is None:
        raise NotFound
    try:
        return originals.picture(found)
    except FileNotFoundError as error:
        raise NotFound from error


@require_safe
@login_required
def show_page(request: PersonRequest, slug: str, document_id: UUID, number: int) -> HttpResponse:
    """Send a page of a PDF as a picture, with what stands from ``start`` to ``end`` of its text highlighted."""
    frame = enter(request, slug)
    documents = Document.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents, pk=document_id)
    if not page_pictures.can_be_drawn(document) or not 1 <= number <= (document.page_count or number):
        raise NotFound
    start, end = (request.GET.get(name, "") for name in ("start", "end"))
    try:
        picture = page_pictures.draw(document, number, actor=request.user, start=start, end=end)
    except FileNotFoundError as error:
        raise OriginalMissing from error
    audit.opened(document, who=request.user, action="document.page_opened", page=picture.page)
    return page_pictures.answer(picture)


@require_POST
@login_required
def retry_document(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Read and index a document once more."""
    frame = enter(request, slug)
    documents = Document.objects.editable_by(request.user).filter(workspace=frame["workspace"], pk=document_id)
    document = get_object_or_404(documents.select_related("knowledge_base"))
    page = ask_first(request, frame, document.knowledge_base, documents, act="retry")
    if page and request.htmx:  # a row has no room for the question; the document's page has the button too
        return HttpResponseClientRedirect(reverse("knowledge:show-document", args=[slug, document.pk]))
    return page or _changed(request, slug, document_id, services.retry_document)


@require_POST
@login_required
def cancel_document(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Stop reading or indexing a document at the next safe point."""
    return _changed(request, slug, document_id, services.cancel_document)


@require_POST
@login_required
def delete_document(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Delete a document at once; the page offers Undo for as long as it is not erased."""
    frame = enter(request, slug)
    documents = Document.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents, pk=document_id)
    services.delete_document(document=document, actor=request.user)
    text = _("“%(name)s” was deleted.") % {"name": document.name}
    undo = reverse("knowledge:restore-document", args=[slug, document.pk])
    if request.htmx:
        done = trigger_client_event(HttpResponse(), "toast", {"text": text, "undo": undo})
        return trigger_client_event(done, "resume", after="settle")
    messages.success(request, text, extra_tags=undo)
    return redirect("knowledge:show-knowledge-base", slug, document.knowledge_base_id)


@require_POST
@login_required
def restore_document(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Undo a deletion that is not carried out yet."""
    frame = enter(request, slug)
    documents = Document.objects.editable_by(request.user, deleted=True).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents, pk=document_id)
    services.restore_document(document=document, actor=request.user)
    messages.success(request, _("“%(name)s” is back.") % {"name": document.name})
    return redirect("knowledge:show-knowledge-base", slug, document.knowledge_base_id)


def _changed(request: PersonRequest, slug: str, document_id: UUID, service: Callable[..., object]) -> HttpResponse:
    """Run a service on a document that one may manage; answer with its row, or lead back to the base."""
    frame = enter(request, slug)
    documents = Document.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents.with_changes(), pk=document_id)
    service(document=document, actor=request.user)
    document.refresh_from_db()
    if not request.htmx:
        return redirect("knowledge:show-knowledge-base", slug, document.knowledge_base_id)
    bases = KnowledgeBase.objects.visible_to(request.user).with_rights(request.user)
    base = get_object_or_404(bases, pk=document.knowledge_base_id)
    row = render(request, "knowledge/partials/_document_row.html", {**frame, "base": base, "document": document})
    return trigger_client_event(row, "resume", after="settle")
