"""The log of questions of an agent."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from apps.agents.models import Agent
from apps.common.text import whole
from apps.conversations.asked import UNANSWERED, questions_of
from apps.workspaces import audit
from apps.workspaces.pages import PersonRequest, enter

SHOWN = 50


@require_safe
@login_required
def list_agent_questions(request: PersonRequest, slug: str, agent_id: UUID) -> HttpResponse:
    """Show what an agent was asked to those who may change it; unanswered questions come first."""
    frame = enter(request, slug)
    editable = Agent.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    agent = get_object_or_404(editable.select_related("workspace"), pk=agent_id)
    audit.opened(agent, who=request.user, action="questions.opened", right=frame["right"])
    turns = questions_of(agent)
    page = Paginator(turns, SHOWN).get_page(whole(request.GET.get("page", "")) or 1)
    context = {"agent": agent, "page": page, "unanswered": turns.filter(UNANSWERED).count(), "section": "agents"}
    return render(request, "conversations/list_agent_questions.html", {**frame, **context})
