"""Pages of facts: which a base keeps of its documents, and what they are of one document."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.knowledge import services
from apps.knowledge.models import Document, KnowledgeBase, MetadataField
from apps.workspaces.pages import PersonRequest, enter

# What reading a file finds out about it, in the order of the page. The rest is told as remarks.
FOUND = {
    "title": gettext_lazy("Title"),
    "author": gettext_lazy("Author"),
    "created": gettext_lazy("Created"),
    "modified": gettext_lazy("Changed"),
    "language": gettext_lazy("Language"),
    "encoding": gettext_lazy("Encoding"),
}


@require_safe
@login_required
def show_facts(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Show what is known of a document: what reading found, and what people say; a form for those who may change it."""
    frame = enter(request, slug)
    documents = Document.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents.select_related("knowledge_base", "uploaded_by"), pk=document_id)
    fields = MetadataField.objects.visible_to(request.user).filter(knowledge_base=document.knowledge_base_id)
    context: dict[str, Any] = {
        "document": document,
        "base": document.knowledge_base,
        "found": [(label, document.metadata[key]) for key, label in FOUND.items() if document.metadata.get(key)],
        "fields": [(field, document.attributes.get(field.key)) for field in fields.order_by("created_at")],
        "editable": Document.objects.editable_by(request.user).filter(pk=document.pk).exists(),
        "section": "knowledge",
    }
    return render(request, "knowledge/show_facts.html", {**frame, **context})


@require_POST
@login_required
def save_facts(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Keep what the form says of a document."""
    frame = enter(request, slug)
    documents = Document.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    document = get_object_or_404(documents, pk=document_id)
    fields = MetadataField.objects.editable_by(request.user).filter(knowledge_base=document.knowledge_base_id)
    posted = request.POST
    services.describe_document(
        document=document,
        attributes={field.key: posted[name] for field in fields if (name := f"fact-{field.key}") in posted},
        tags=posted["tags"].replace("，", ",").split(",") if "tags" in posted else None,
        actor=request.user,
    )
    messages.success(request, _("Saved. Search can be narrowed by it from now on."))
    return redirect("knowledge:show-facts", slug, document.pk)


@require_safe
@login_required
def list_fields(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """List the facts that a base keeps of its documents."""
    frame, base = _base(request, slug, base_id)
    fields = MetadataField.objects.editable_by(request.user).filter(knowledge_base=base).order_by("created_at")
    context = {"base": base, "fields": fields, "types": MetadataField.Type.choices, "section": "knowledge"}
    return render(request, "knowledge/list_fields.html", {**frame, **context})


@require_POST
@login_required
def add_field(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Have a base keep another fact."""
    _frame, base = _base(request, slug, base_id)
    services.add_metadata_field(
        knowledge_base=base,
        key=request.POST.get("key", ""),
        of_type=request.POST.get("type", ""),
        choices=request.POST.get("choices", "").splitlines(),
        actor=request.user,
    )
    messages.success(request, _("Added. Each document has a place for it now."))
    return redirect("knowledge:list-fields", slug, base.pk)


@require_POST
@login_required
def delete_field(request: PersonRequest, slug: str, field_id: UUID) -> HttpResponse:
    """Keep a fact no more; what it is of each document goes with it."""
    frame = enter(request, slug)
    fields = MetadataField.objects.editable_by(request.user).filter(knowledge_base__workspace=frame["workspace"])
    field = get_object_or_404(fields, pk=field_id)
    services.delete_metadata_field(field=field, actor=request.user)
    messages.success(request, _("“%(name)s” was deleted.") % {"name": field.key})
    return redirect("knowledge:list-fields", slug, field.knowledge_base_id)


def _base(request: PersonRequest, slug: str, base_id: UUID) -> tuple[dict[str, Any], KnowledgeBase]:
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return frame, get_object_or_404(bases, pk=base_id)
