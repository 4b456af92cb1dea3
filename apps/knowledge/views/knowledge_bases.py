"""Pages of knowledge bases: the list, one base with its documents, sharing."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from apps.knowledge import progress, services
from apps.knowledge.forms import KnowledgeBaseForm
from apps.knowledge.models import Document, Folder, KnowledgeBase
from apps.knowledge.querysets import DocumentQuerySet
from apps.knowledge.services import sample
from apps.workspaces import permissions
from apps.workspaces.pages import NO_ROW, PersonRequest, enter

ROWS = 25


@require_safe
@login_required
def list_knowledge_bases(request: PersonRequest, slug: str) -> HttpResponse:
    """List the bases one may read, with how many documents each has."""
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    page = Paginator(bases.with_counts(request.user).order_by("name"), ROWS).get_page(request.GET.get("page"))
    may_create = permissions.allows("create_knowledge_base", frame["role"])
    context = {"page": page, "form": KnowledgeBaseForm(), "may_create": may_create, "section": "knowledge"}
    return render(request, "knowledge/list_knowledge_bases.html", {**frame, **context})


@require_POST
@login_required
def create_knowledge_base(request: PersonRequest, slug: str) -> HttpResponse:
    """Create a base and lead to it; a form that does not fit comes back with 422."""
    frame = enter(request, slug)
    permissions.require("create_knowledge_base", actor=request.user, workspace=frame["workspace"])
    form = KnowledgeBaseForm(request.POST, instance=KnowledgeBase(workspace=frame["workspace"]))
    if not form.is_valid():
        context = {**frame, "form": form, "section": "knowledge"}
        return render(request, "knowledge/create_knowledge_base.html", context, status=422)
    base = services.create_knowledge_base(workspace=frame["workspace"], actor=request.user, **form.cleaned_data)
    return redirect("knowledge:show-knowledge-base", slug, base.pk)


@require_POST
@login_required
def create_sample(request: PersonRequest, slug: str) -> HttpResponse:
    """Put the product's own guide into the workspace, and lead back to the question."""
    frame = enter(request, slug)
    permissions.require("create_knowledge_base", actor=request.user, workspace=frame["workspace"])
    sample.create_sample_base(workspace=frame["workspace"], actor=request.user)
    return redirect("conversations:new-question", slug)


@require_safe
@vary_on_headers("HX-Request")
@login_required
def show_knowledge_base(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Show a base's documents: newest first, filtered by name and state, a page at a time."""
    frame = enter(request, slug)
    visible = KnowledgeBase.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(visible.with_rights(request.user), pk=base_id)
    documents = Document.objects.visible_to(request.user).filter(knowledge_base=base)
    name, state = request.GET.get("q", "").strip(), request.GET.get("state", "")
    folders = list(Folder.objects.visible_to(request.user).filter(knowledge_base=base).order_by("name"))
    folder = next((one for one in folders if str(one.pk) == request.GET.get("folder", "")), None)
    tag = request.GET.get("tag", "")
    shown = documents.shown(name=name, state=state, tag=tag, folder=folder)
    page = Paginator(_told(shown, base).order_by("-created_at"), ROWS)
    context = {"base": base, "page": page.get_page(request.GET.get("page")), "counts": documents.counts()}
    context |= {"folders": folders, "folder": folder, "tag": tag, "path": _path(folder, folders)}
    context |= {"q": name, "state": state, "section": "knowledge", "no_row": NO_ROW}
    part = "partials/_documents" if request.htmx else "show_knowledge_base"
    return render(request, f"knowledge/{part}.html", {**frame, **context})


def _told(documents: DocumentQuerySet, base: KnowledgeBase) -> DocumentQuerySet:
    """Add what rows tell those who manage the base: changes to passages that found none any more."""
    return documents.with_changes() if base.editable else documents  # type: ignore[attr-defined]  # of with_rights


def _path(folder: Folder | None, folders: list[Folder]) -> list[Folder]:
    """Return the folders from the top down to one, of those that may be seen."""
    by_id = {one.pk: one for one in folders}
    return [by_id[pk] for pk in folder.lineage if pk in by_id] if folder else []


@require_safe
@login_required
def show_progress(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Return the rows that look different from what ``row`` says, and the counts; the page swaps them in place."""
    frame = enter(request, slug)
    visible = KnowledgeBase.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(visible.with_rights(request.user), pk=base_id)
    documents = Document.objects.visible_to(request.user).filter(knowledge_base=base)
    rows, gone = progress.changes(_told(documents, base), request.GET.getlist("row"))
    context = {"base": base, "rows": rows, "gone": gone, "counts": documents.counts()}
    context["state"] = request.GET.get("state", "")
    return render(request, "knowledge/partials/_progress.html", {**frame, **context})


@require_POST
@login_required
def delete_knowledge_base(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Delete a base with everything in it."""
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(bases, pk=base_id)
    services.delete_knowledge_base(knowledge_base=base, actor=request.user)
    messages.success(request, _("“%(name)s” was deleted.") % {"name": base.name})
    return redirect("knowledge:list-knowledge-bases", slug)
