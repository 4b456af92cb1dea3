"""What people changed in passages, shown before the documents are cut anew."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from apps.knowledge.models import ChunkOverride, KnowledgeBase
from apps.knowledge.querysets import DocumentQuerySet
from apps.workspaces.pages import PersonRequest

SHOWN = 50


def ask_first(
    request: PersonRequest,
    frame: dict[str, Any],
    base: KnowledgeBase,
    documents: DocumentQuerySet,
    *,
    act: str,
    fields: Sequence[tuple[str, str]] | None = None,
) -> HttpResponse | None:
    """Return a page that lists what people changed in these documents and asks whether to go on.

    None where nothing was changed, or where that page has been answered: it sends the same form again,
    with ``confirmed``, or ``fields`` where the form has a file, which no page can send again. ``act`` is what is
    asked for: "parse", "index", "cut", "fetch", "retry" or "write".
    """
    if request.POST.get("confirmed"):
        return None
    changes = ChunkOverride.objects.editable_by(request.user).in_use()
    changes = changes.filter(document__in=documents.order_by().values("pk"))
    counts = changes.counts()
    if not counts["total"]:
        return None
    skipped = ("csrfmiddlewaretoken", "confirmed")
    posted = [(name, value) for name in request.POST if name not in skipped for value in request.POST.getlist(name)]
    context = {
        "base": base,
        "act": act,
        "fields": posted if fields is None else fields,
        "counts": counts,
        "changes": changes.select_related("document", "changed_by").order_by("document", "-changed_at")[:SHOWN],
        "more": max(0, counts["total"] - SHOWN),
        "documents": changes.order_by().values("document").distinct().count(),
        "section": "knowledge",
    }
    return render(request, "knowledge/ask_first.html", {**frame, **context})
