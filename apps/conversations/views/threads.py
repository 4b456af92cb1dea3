"""Pages of conversations: a new question, the thread, one turn, one source."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from apps.agents.models import Agent
from apps.agents.tools import catalog
from apps.common.errors import KnowSphereError
from apps.common.text import identifier, whole
from apps.conversations import first_steps, pages, services, sources, steps
from apps.conversations.forms import AskForm
from apps.conversations.frames import MAX_ATTACHMENTS
from apps.conversations.models import Citation, Conversation, Feedback, Share, Turn
from apps.knowledge.capability import knowledge_capability_enabled
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services import sample
from apps.models import gateway
from apps.models.models import Kind, ModelConfig
from apps.workspaces import audit, permissions
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
    may_create = permissions.allows("create_knowledge_base", frame["role"])
    context["may_create"] = may_create and knowledge_capability_enabled()
    if first_steps.COOKIE not in request.COOKIES:
        given = {"workspace": frame["workspace"], "user": request.user, "role": frame["role"]}
        own_model = not context["by_builtin"]
        context["steps"] = first_steps.steps(**given, asked=not context["first"], own_model=own_model)
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
    agent = _agent(request, frame["workspace"], request.POST.get("agent", ""))
    given = form.ask()
    if "sample" in request.POST:
        given = given.model_copy(update={"knowledge_bases": [_sample(request, frame).pk]})
    conversation = services.start_conversation(workspace=frame["workspace"], actor=request.user, agent=agent)
    try:
        async_to_sync(services.start_turn)(conversation, given, actor=request.user)
    except KnowSphereError:
        conversation.delete()  # nothing was asked in it
        raise
    return redirect("conversations:show-conversation", slug, conversation.pk)


def _sample(request: PersonRequest, frame: dict[str, Any]) -> KnowledgeBase:
    """Return the product's own guide, put into the workspace where it is not yet."""
    permissions.require("create_knowledge_base", actor=request.user, workspace=frame["workspace"])
    return sample.create_sample_base(workspace=frame["workspace"], actor=request.user)


@require_POST
@login_required
def hide_steps(request: PersonRequest, slug: str) -> HttpResponse:
    """Put the first steps of a workspace away, in this browser."""
    workspace = enter(request, slug)["workspace"]
    response = redirect("conversations:new-question", workspace.slug)
    response.set_cookie(
        first_steps.COOKIE,
        "hidden",
        max_age=365 * 24 * 3600,
        path=f"/{workspace.slug}/",
        samesite="Lax",
        secure=settings.SECURE_COOKIES,
        httponly=True,
    )
    return response


@require_safe
@never_cache
@login_required
def show_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Show a conversation: its newest turns, and the place to ask the next question."""
    frame = enter(request, slug)
    mine = Conversation.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    conversation = get_object_or_404(mine, pk=conversation_id)
    turn, before = (identifier(request.GET.get(name, "")) for name in ("turn", "before"))
    window = pages.show_turns(conversation, reader=request.user, turn=turn, before=before)
    share = Share.objects.visible_to(request.user).filter(conversation=conversation).first()
    context = {"conversation": conversation, "window": window, "turns": window.turns, "share": share}
    context |= {"leaf": window.end, "reasons": Feedback.Reason.choices, "section": "ask"}
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
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
    return redirect("conversations:show-conversation", slug, conversation.pk)


@require_safe
@never_cache
@login_required
def show_turn(request: PersonRequest, slug: str, turn_id: UUID) -> HttpResponse:
    """Return one turn as it is stored; the page's script puts it in place of what it drew itself."""
    frame = enter(request, slug)
    turns = Turn.objects.visible_to(request.user).filter(conversation__workspace=frame["workspace"])
    known = pages.with_parts(turns, reader=request.user).select_related("conversation", "feedback")
    turn = get_object_or_404(known, pk=turn_id)
    [shown] = pages.with_versions(turn.conversation, [pages.show_turn(turn)])
    context = {"shown": shown, "conversation": turn.conversation, "models": _models(request, frame["workspace"])}
    context |= {"reasons": Feedback.Reason.choices}
    return render(request, "conversations/partials/_turn.html", {**frame, **context, "last": True})


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
    audit.opened(turn, who=request.user, action="source.opened", n=n)
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
    shown = list(bases.with_counts(request.user).order_by("name"))
    model = gateway.resolve("chat", workspace_id=workspace.pk)
    gateway.warm_up()
    return {
        "bases": shown,
        "ready": any(base.ready_count for base in shown),  # type: ignore[attr-defined]
        "sample": next((base for base in shown if base.name == sample.NAME), None),
        "chosen": request.GET.getlist("kb"),
        "agent": _agent(request, workspace, request.GET.get("agent", "")),
        "by_builtin": model.provider == "builtin",
        "form": AskForm(),
        "models": _models(request, workspace),
        "web_ready": "web_search" in catalog.TOOLS,
        "most_attachments": MAX_ATTACHMENTS,
    }


def _agent(request: PersonRequest, workspace: Workspace, given: str) -> Agent | None:
    """Return the agent that is asked; None where none was named, and the workspace's default answers."""
    if not given:
        return None
    mine = Agent.objects.visible_to(request.user).filter(workspace=workspace)
    return get_object_or_404(mine, pk=identifier(given))


def _models(request: PersonRequest, workspace: Workspace) -> list[ModelConfig]:
    """Return the models that one answer may be asked of, in place of the usual one."""
    usable = ModelConfig.objects.visible_to(request.user).usable_in(workspace.pk)
    return list(usable.filter(kind=Kind.CHAT, enabled=True).own_first())
