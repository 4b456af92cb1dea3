"""Pages of passages: those of a document, with what can be changed about them, and those of a base that need a look."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.knowledge import quality, services
from apps.knowledge.models import Chunk, ChunkOverride, Document, KnowledgeBase
from apps.workspaces import audit
from apps.workspaces.pages import PersonRequest, enter

ROWS = 20


@require_safe
@login_required
def list_chunks(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """List a document's passages in reading order, or those that hold a word."""
    frame = enter(request, slug)
    documents = Document.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    lost = ChunkOverride.objects.editable_by(request.user).filter(document=OuterRef("pk"), applied=False)
    found = documents.with_rights(request.user).select_related("knowledge_base").annotate(lost=Exists(lost))
    document = get_object_or_404(found, pk=document_id)
    editable: bool = document.editable  # type: ignore[attr-defined]  # of with_rights
    some_lost: bool = document.lost  # type: ignore[attr-defined]
    words = request.GET.get("q", "").strip()
    chunks = Chunk.objects.visible_to(request.user).filter(document=document, level=Chunk.PARENT)
    if not editable:  # what was switched off is for who may switch it on again
        chunks = chunks.filter(disabled=False)
    shown = quality.with_repeated(chunks).holding(words).order_by("ordinal")
    page = Paginator(shown, ROWS).get_page(request.GET.get("page"))
    context = {
        "document": document,
        "base": document.knowledge_base,
        "page": page,
        "q": words,
        "editable": editable,
        "lengths": quality.lengths(chunks),
        "lost": document.overrides.filter(applied=False) if some_lost else [],
        "section": "knowledge",
    }
    audit.opened(document, who=request.user, right=frame["right"], passages=len(page.object_list))
    return render(request, "knowledge/list_chunks.html", {**frame, **context})


@require_POST
@login_required
def edit_chunk(request: PersonRequest, slug: str, chunk_id: UUID) -> HttpResponse:
    """Have a passage read otherwise, from the next indexing on."""
    text = request.POST.get("text", "")
    done = _("Saved. The passage is found by its new text as soon as the document is indexed again.")
    return _changed(request, slug, chunk_id, partial(services.edit_chunk, text=text, actor=request.user), done)


@require_POST
@login_required
def switch_chunk(request: PersonRequest, slug: str, chunk_id: UUID) -> HttpResponse:
    """Have a passage found no more, or again."""
    if request.POST.get("on"):
        done = _("The passage is found again as soon as the document is indexed again.")
        return _changed(request, slug, chunk_id, partial(services.enable_chunk, actor=request.user), done)
    done = _("The passage is not found any more.")
    return _changed(request, slug, chunk_id, partial(services.disable_chunk, actor=request.user), done)


@require_POST
@login_required
def discard_change(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Let go a change to a passage that the document does not have any more."""
    frame = enter(request, slug)
    documents = Document.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents, pk=document_id)
    try:
        wanted = UUID(request.POST.get("change", ""))
    except ValueError as error:
        raise Http404 from error
    change = get_object_or_404(ChunkOverride, document=document, applied=False, pk=wanted)
    services.discard_override(override=change, actor=request.user)
    return redirect("knowledge:list-chunks", slug, document.pk)


@require_safe
@login_required
def check_quality(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Show the passages of a base that are likely to answer badly, by what is wrong with them."""
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(bases, pk=base_id)
    kind = request.GET.get("kind", "")
    chunks = Chunk.objects.visible_to(request.user).filter(knowledge_base=base)
    found = quality.finding(kind, chunks, base)
    page = Paginator(found.select_related("document").order_by("document", "ordinal"), ROWS)
    context = {
        "base": base,
        "kind": kind if kind in quality.FINDINGS else quality.FIRST,
        "findings": quality.counts(chunks, base),
        "page": page.get_page(request.GET.get("page")),
        "section": "knowledge",
    }
    return render(request, "knowledge/check_quality.html", {**frame, **context})


def _changed(request: PersonRequest, slug: str, chunk_id: UUID, change: Callable[..., None], done: str) -> HttpResponse:
    frame = enter(request, slug)
    chunks = Chunk.objects.editable_by(request.user).filter(document__workspace=frame["workspace"])
    chunk = get_object_or_404(chunks, pk=chunk_id)
    change(chunk=chunk)
    messages.success(request, done)
    where = redirect("knowledge:list-chunks", slug, chunk.document_id)
    where["Location"] += f"?page={chunk.ordinal // ROWS + 1}#passage-{chunk.ordinal}"
    return where
