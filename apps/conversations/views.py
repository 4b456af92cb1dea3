"""Pages of conversations: a new question, the thread, one turn, one source."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from apps.common.errors import KnowSphereError
from apps.common.text import whole
from apps.conversations import pages, services, sources, steps
from apps.conversations.forms import AskForm
from apps.conversations.models import Citation, Conversation, Turn
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services import sample
from apps.models import gateway
from apps.workspaces import permissions
from apps.workspaces.models import Workspace
from apps.workspaces.pages import PersonRequest, enter


@require_safe
@login_required
def new_question(request: PersonRequest, slug: str) -> HttpResponse:
    """Offer a question; to somebody who has not asked yet, also the way to the first answer."""
    frame = enter(request, slug)
    context = {**frame, **_composer(request, frame["workspace"]), "section": "ask"}
    mine = Conversation.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    context["first"] = not mine.exists()
    context["may_create"] = permissions.allows("create_knowledge_base", frame["role"])
    return render(request, "conversations/new_question.html", context)


@require_POST
@login_required
def start_conversation(request: PersonRequest, slug: str) -> HttpResponse:
    """Begin a conversation with a question and lead to it."""
    frame = enter(request, slug)
    form = AskForm(request.POST)
    if not form.is_valid():
        context = {**frame, **_composer(request, frame["workspace"]), "form": form, "section": "ask"}
        return render(request, "conversations/new_question.html", context, status=422)
    conversation = services.start_conversation(workspace=frame["workspace"], actor=request.user)
    try:
        async_to_sync(services.start_turn)(conversation, form.ask(), actor=request.user)
    except KnowSphereError:
        conversation.delete()  # nothing was asked in it
        raise
    return redirect("conversations:show-conversation", slug, conversation.pk)


@require_safe
@never_cache
@login_required
def show_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Show a conversation: its newest turns, and the place to ask the next question."""
    frame = enter(request, slug)
    mine = Conversation.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    conversation = get_object_or_404(mine, pk=conversation_id)
    before = whole(request.GET.get("before", ""))
    turns, earlier = pages.show_turns(conversation, before=before)
    context = {"conversation": conversation, "turns": turns, "earlier": earlier, "section": "ask"}
    context |= {**_composer(request, frame["workspace"]), "step_words": steps.words()}
    return render(request, "conversations/show_conversation.html", {**frame, **context})


@require_POST
@login_required
def ask(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Ask the next question of a conversation, from a page without script."""
    frame = enter(request, slug)
    mine = Conversation.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    conversation = get_object_or_404(mine, pk=conversation_id)
    form = AskForm(request.POST)
    if form.is_valid():
        async_to_sync(services.start_turn)(conversation, form.ask(), actor=request.user)
    else:
        messages.error(request, _("The question is empty. Write one and send it again."))
    return redirect("conversations:show-conversation", slug, conversation.pk)


@require_POST
@login_required
def delete_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Delete a conversation at once; the page offers Undo for as long as it is not erased."""
    frame = enter(request, slug)
    mine = Conversation.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    services.delete_conversation(conversation=get_object_or_404(mine, pk=conversation_id), actor=request.user)
    undo = reverse("conversations:restore-conversation", args=[slug, conversation_id])
    messages.success(request, _("The conversation was deleted."), extra_tags=undo)
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
def show_turn(request: PersonRequest, slug: str, turn_id: UUID) -> HttpResponse:
    """Return one turn as it is stored; the page's script puts it in place of what it drew itself."""
    frame = enter(request, slug)
    turns = Turn.objects.visible_to(request.user).filter(conversation__workspace=frame["workspace"])
    turn = get_object_or_404(pages.with_parts(turns), pk=turn_id)
    return render(request, "conversations/partials/_turn.html", {**frame, "shown": pages.show_turn(turn)})


@require_safe
@never_cache
@vary_on_headers("HX-Request")
@login_required
def show_source(request: PersonRequest, slug: str, turn_id: UUID, n: int) -> HttpResponse:
    """Show a source of an answer: the cited passage, highlighted within its document."""
    frame = enter(request, slug)
    turns = Turn.objects.visible_to(request.user).filter(conversation__workspace=frame["workspace"])
    turn = get_object_or_404(turns, pk=turn_id)
    at = whole(request.GET.get("at", "")) or 0
    source = sources.open_source(turn, n, user=request.user, occurrence=at)
    part = "partials/_source" if request.htmx else "show_source"
    context = {**frame, "source": source, "panel": bool(request.htmx), "section": "ask"}
    return render(request, f"conversations/{part}.html", context)


@require_safe
@login_required
def show_citation(request: PersonRequest, slug: str, citation_id: UUID) -> HttpResponse:
    """Lead from a citation's own id to the source of the answer that it belongs to."""
    frame = enter(request, slug)
    mine = Citation.objects.visible_to(request.user).filter(message__conversation__workspace=frame["workspace"])
    citation = get_object_or_404(mine.select_related("message"), pk=citation_id)
    return redirect("conversations:show-source", slug, citation.message.turn_id, citation.n)


def _composer(request: PersonRequest, workspace: Workspace) -> dict[str, Any]:
    """Return what the place to ask needs: the bases to choose from, and which kind of model answers."""
    bases = KnowledgeBase.objects.visible_to(request.user).filter(workspace=workspace)
    shown = list(bases.with_counts().order_by("name"))
    model = gateway.resolve("chat", workspace_id=workspace.pk)
    gateway.warm_up()
    return {
        "bases": shown,
        "ready": any(base.ready_count for base in shown),  # type: ignore[attr-defined]
        "sample": next((base for base in shown if base.name == sample.NAME), None),
        "chosen": request.GET.getlist("kb"),
        "by_builtin": model.provider == "builtin",
        "form": AskForm(),
    }
