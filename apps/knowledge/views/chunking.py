"""How a base cuts its documents: the settings, and what a real document would become with them."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.knowledge import chunkers, services
from apps.knowledge.chunkers.drafts import PARENT
from apps.knowledge.models import Document, Job, KnowledgeBase
from apps.knowledge.services.chunking import settings_of
from apps.knowledge.views.changes import ask_first
from apps.workspaces.pages import PersonRequest, enter

SHOWN = 30
NO_SETTING = ("chunker", "document", "again", "confirmed", "csrfmiddlewaretoken")
NAMES = {
    "by_heading": gettext_lazy("By headings"),
    "parent_child": gettext_lazy("Passages with parts"),
    "three_level": gettext_lazy("Three levels"),
}
LABELS = {
    "size": gettext_lazy("Length of a passage"),
    "tokens": gettext_lazy("Limit of a passage"),
    "overlap": gettext_lazy("Overlap"),
    "heading_level": gettext_lazy("Deepest heading that begins a passage"),
    "parent_size": gettext_lazy("Length of a passage"),
    "parent_tokens": gettext_lazy("Limit of a passage"),
    "child_size": gettext_lazy("Length of a part"),
    "child_tokens": gettext_lazy("Limit of a part"),
    "child_overlap": gettext_lazy("Overlap of parts"),
    "l1_size": gettext_lazy("Length of the first level"),
    "l1_overlap": gettext_lazy("Overlap of the first level"),
    "l2_size": gettext_lazy("Length of the second level"),
    "l2_overlap": gettext_lazy("Overlap of the second level"),
    "l3_size": gettext_lazy("Length of the third level, which is searched"),
    "l3_overlap": gettext_lazy("Overlap of the third level"),
    "l3_tokens": gettext_lazy("Limit of the third level"),
    "delimiter": gettext_lazy("Cut at"),
    "delimiter_is_regex": gettext_lazy("It is a regular expression"),
}
UNITS = {
    "characters": gettext_lazy("characters"),
    "tokens": gettext_lazy("tokens, 0 for no limit"),
    "levels": gettext_lazy("levels"),
    "": "",
}


@require_safe
@login_required
def configure_chunker(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Show the chunker's settings beside a document cut with them; nothing is stored."""
    from apps.knowledge.services.previewing import chunk_preview  # it counts with the model's own tokens

    frame, base = _base(request, slug, base_id)
    chunker = request.GET.get("chunker") or base.chunker
    typed = {name: str(value) for name, value in request.GET.items() if name not in NO_SETTING}
    documents = Document.objects.visible_to(request.user).filter(knowledge_base=base).exclude(markdown_key="")
    chosen = documents.among([request.GET.get("document", "")]).first() or documents.order_by("-created_at").first()
    values = settings_of(chunker, typed) if typed else (base.chunker_settings if chunker == base.chunker else {})
    chunkers.validated_settings(chunker, values)
    context: dict[str, Any] = {"base": base, "chunker": chunker, "chunkers": NAMES, "fields": _fields(chunker, values)}
    if chosen:
        chosen.knowledge_base = base
        drafts = chunk_preview(document=chosen, chunker=chunker, chunker_settings=values)
        passages = [draft for draft in drafts if draft.level == PARENT]
        sizes = sorted(len(draft.text) for draft in passages) or [0]
        context |= {"passages": passages[:SHOWN], "count": len(passages), "parts": len(drafts) - len(passages)}
        context |= {"middle": sizes[len(sizes) // 2], "longest": sizes[-1]}
    context |= _move(request, base) if base.embedding_model else {}
    context |= {"chosen": chosen, "documents": documents.order_by("-created_at")[:50], "section": "knowledge"}
    part = "partials/_preview" if request.htmx else "configure_chunker"
    return render(request, f"knowledge/{part}.html", {**frame, **context})


@require_POST
@login_required
def save_chunker(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Keep the settings; documents that are there are cut anew only if that is asked for."""
    frame, base = _base(request, slug, base_id)
    chunker = request.POST.get("chunker", "")
    typed = {name: str(value) for name, value in request.POST.items() if name not in NO_SETTING}
    if request.POST.get("again"):
        documents = Document.objects.editable_by(request.user).filter(knowledge_base=base)
        chunkers.validated_settings(chunker, settings_of(chunker, typed))
        if page := ask_first(request, frame, base, documents, act="cut"):
            return page
    count = services.configure_chunker(
        knowledge_base=base,
        chunker=chunker,
        chunker_settings=settings_of(chunker, typed),
        again=bool(request.POST.get("again")),
        actor=request.user,
    )
    done = _("Saved, and %(count)s in the queue to be cut anew. What is there answers meanwhile.") % {"count": count}
    messages.success(request, done if count else _("Saved. It counts for documents that are indexed from now on."))
    return redirect("knowledge:configure-chunker", slug, base.pk)


@require_POST
@login_required
def move_model(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Move a base to another embedding model, in the background."""
    _frame, base = _base(request, slug, base_id)
    services.move_to_model(knowledge_base=base, model=request.POST.get("model", ""), actor=request.user)
    messages.success(request, _("Begun. Search goes on as it is until all is embedded anew. You can leave this page."))
    return redirect("knowledge:list-jobs", slug, base.pk)


@require_POST
@login_required
def dismiss_move(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Put a move that failed away."""
    _frame, base = _base(request, slug, base_id)
    services.dismiss_move(knowledge_base=base, actor=request.user)
    messages.success(request, _("Put away. The base stays with its embedding model."))
    return redirect("knowledge:configure-chunker", slug, base.pk)


def _move(request: PersonRequest, base: KnowledgeBase) -> dict[str, Any]:
    """Return what the card of the embedding model shows: those that the base may be moved to, and the last move."""
    moves = Job.objects.visible_to(request.user).filter(knowledge_base=base, kind=Job.Kind.EMBED)
    last = moves.order_by("-created_at").first() if base.next_model else None
    return {"models": services.models_for(knowledge_base=base, actor=request.user), "move": last}


def _fields(chunker: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "setting": setting,
            "label": LABELS.get(setting.name, setting.name),
            "unit": UNITS[setting.unit],
            "value": values.get(setting.name, setting.default),
            "kind": type(setting.default).__name__,
        }
        for setting in chunkers.SETTINGS.get(chunker).described()
    ]


def _base(request: PersonRequest, slug: str, base_id: UUID) -> tuple[dict[str, Any], KnowledgeBase]:
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return frame, get_object_or_404(bases, pk=base_id)
