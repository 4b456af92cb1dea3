"""What is remembered about a person, for that person alone: see, change, erase, switch off."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.memory import services
from apps.memory.models import DocumentAffinity, MemoryItem
from apps.workspaces.pages import PersonRequest, enter

SHOWN = 300


@require_safe
@never_cache
@login_required
def list_items(request: PersonRequest, slug: str) -> HttpResponse:
    """Show everything that is remembered, by kind, and the documents that answers often cited."""
    frame = enter(request, slug)
    items = MemoryItem.objects.visible_to(request.user).filter(workspace=frame["workspace"]).order_by("-created_at")
    often = DocumentAffinity.objects.visible_to(request.user).filter(workspace=frame["workspace"]).often()
    rows = list(items[:SHOWN])
    context = {
        "kinds": [(kind, [row for row in rows if row.kind == kind]) for kind in MemoryItem.Kind],
        "often": often.select_related("document")[:50],
        "off": services.is_off(workspace=frame["workspace"], actor=request.user),
        "count": len(rows),
        "section": "memory",
    }
    return render(request, "memory/list_items.html", {**frame, **context})


@require_POST
@login_required
def add_item(request: PersonRequest, slug: str) -> HttpResponse:
    """Remember what the person writes here."""
    frame = enter(request, slug)
    stored = services.store_items(
        workspace=frame["workspace"], texts=[request.POST.get("text", "")], actor=request.user
    )
    if stored:
        messages.success(request, _("I will remember that."))
    return redirect("memory:list-items", slug)


@require_POST
@login_required
def update_item(request: PersonRequest, slug: str, item_id: UUID) -> HttpResponse:
    """Change the words of a statement."""
    services.update_item(item=_own(request, slug, item_id), text=request.POST.get("text", ""))
    messages.success(request, _("Changed."))
    return redirect("memory:list-items", slug)


@require_POST
@login_required
def delete_item(request: PersonRequest, slug: str, item_id: UUID) -> HttpResponse:
    """Erase a statement at once."""
    services.delete_item(item=_own(request, slug, item_id))
    messages.success(request, _("Forgotten."))
    return redirect("memory:list-items", slug)


@require_POST
@login_required
def forget_document(request: PersonRequest, slug: str, affinity_id: UUID) -> HttpResponse:
    """Forget that a document was often consulted."""
    frame = enter(request, slug)
    mine = DocumentAffinity.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    services.forget_document(affinity=get_object_or_404(mine, pk=affinity_id))
    messages.success(request, _("Forgotten."))
    return redirect("memory:list-items", slug)


@require_POST
@login_required
def switch(request: PersonRequest, slug: str) -> HttpResponse:
    """Switch one's memory on or off."""
    frame = enter(request, slug)
    services.switch(workspace=frame["workspace"], actor=request.user, on=request.POST.get("on") == "1")
    return redirect("memory:list-items", slug)


def _own(request: PersonRequest, slug: str, item_id: UUID) -> MemoryItem:
    frame = enter(request, slug)
    mine = MemoryItem.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return get_object_or_404(mine, pk=item_id)
