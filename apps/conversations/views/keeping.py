"""Pages of conversations as their owner keeps them: the list, names, pins, the archive, deletion, files."""

from typing import Any
from uuid import UUID

import orjson
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header, url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.common.text import display_name, identifier, storable
from apps.conversations import exporting, finding, services
from apps.conversations.models import Conversation, Turn
from apps.workspaces.pages import NO_ROW, PersonRequest, enter

A_PAGE = 50


@require_safe
@never_cache
@login_required
def list_conversations(request: PersonRequest, slug: str) -> HttpResponse:
    """Show all of a person's conversations, those with a text in them, or the archive."""
    frame = enter(request, slug)
    text = storable(request.GET.get("q", "")).strip()[: finding.LONGEST]
    archived = request.GET.get("archived") == "1"
    mine = Conversation.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    rows = mine.filter(archived_at__isnull=not archived).order_by("-changed_at", "pk")
    if text:
        rows = mine.saying(text).order_by("-changed_at", "pk")  # in the archive too
    page = Paginator(rows, A_PAGE).get_page(request.GET.get("page"))
    found = finding.excerpts([row.pk for row in page.object_list], text) if text else {}
    shown = [{"row": row, "excerpt": found.get(row.pk)} for row in page.object_list]
    context = {"page": page, "shown": shown, "q": text, "archived": archived, "section": "conversations"}
    context["no_row"] = Conversation(pk=NO_ROW)
    return render(request, "conversations/list_conversations.html", {**frame, **context})


def _mine(request: PersonRequest, slug: str, conversation_id: UUID) -> tuple[dict[str, Any], Conversation]:
    frame = enter(request, slug)
    mine = Conversation.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return frame, get_object_or_404(mine, pk=conversation_id)


def _back(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Lead back to the page that the button stood on, if it is ours."""
    there = request.POST.get("next", "")
    if there.startswith("/") and url_has_allowed_host_and_scheme(there, allowed_hosts=None):
        return HttpResponseRedirect(there)  # redirect() would take a word for the name of a view
    return redirect("conversations:show-conversation", slug, conversation_id)


@require_POST
@login_required
def rename_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Give a conversation another title."""
    _frame, conversation = _mine(request, slug, conversation_id)
    services.rename_conversation(conversation=conversation, title=request.POST.get("title", ""), actor=request.user)
    return _back(request, slug, conversation_id)


@require_POST
@login_required
def pin_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Put a conversation above the others, or back among them."""
    _frame, conversation = _mine(request, slug, conversation_id)
    pinned = request.POST.get("pinned", "1") == "1"
    services.pin_conversation(conversation=conversation, pinned=pinned, actor=request.user)
    return _back(request, slug, conversation_id)


@require_POST
@login_required
def archive_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Put a conversation into the archive, or take it out."""
    _frame, conversation = _mine(request, slug, conversation_id)
    archived = request.POST.get("archived", "1") == "1"
    services.archive_conversation(conversation=conversation, archived=archived, actor=request.user)
    said = _("The conversation is in the archive.") if archived else _("The conversation is out of the archive.")
    messages.success(request, said)
    return _back(request, slug, conversation_id)


@require_POST
@login_required
def delete_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Delete a conversation at once; the page offers Undo for as long as it is not erased."""
    _frame, conversation = _mine(request, slug, conversation_id)
    services.delete_conversation(conversation=conversation, actor=request.user)
    undo = reverse("conversations:restore-conversation", args=[slug, conversation_id])
    messages.success(request, _("The conversation was deleted."), extra_tags=undo)
    if request.POST.get("next") == reverse("conversations:list-conversations", args=[slug]):
        return redirect("conversations:list-conversations", slug)
    return redirect("conversations:new-question", slug)


@require_POST
@login_required
def restore_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Undo a deletion that is not carried out yet."""
    enter(request, slug)
    services.restore_conversation(conversation_id=conversation_id, actor=request.user)
    return redirect("conversations:show-conversation", slug, conversation_id)


@require_safe
@never_cache
@login_required
def export_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Send a conversation as a file: Markdown of the branch that is shown, or JSON of all."""
    frame = enter(request, slug)
    mine = Conversation.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    conversation = get_object_or_404(mine, pk=conversation_id)
    if request.GET.get("format") == "json":
        content = exporting.as_json(conversation, reader=request.user)
        response = HttpResponse(orjson.dumps(content, option=orjson.OPT_INDENT_2), content_type="application/json")
        ending = "json"
    else:
        wanted = identifier(request.GET.get("turn", ""))
        turns = Turn.objects.visible_to(request.user).filter(conversation=conversation)
        leaf = turns.filter(pk=wanted).first() if wanted else None
        text = exporting.as_markdown(conversation, reader=request.user, leaf=leaf)
        response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
        ending = "md"
    name = f"{display_name(conversation.title or _('Conversation'), limit=80)}.{ending}"
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["X-Content-Type-Options"] = "nosniff"
    return response
