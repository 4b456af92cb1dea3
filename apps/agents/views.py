"""Pages of agents: the list, the editor with its versions, and what can be done with one."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.agents import editing, services
from apps.agents.errors import AgentNameTaken
from apps.agents.forms import LABELS, AgentForm, initial_of
from apps.agents.models import Agent, AgentVersion
from apps.workspaces import permissions
from apps.workspaces.pages import PersonRequest, enter


def _enter(request: PersonRequest, slug: str) -> dict[str, Any]:
    return {**enter(request, slug), "section": "agents"}


def _own(request: PersonRequest, frame: dict[str, Any], agent_id: UUID) -> Agent:
    editable = Agent.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return get_object_or_404(editable.select_related("workspace", "model"), pk=agent_id)


@require_safe
@login_required
def list_agents(request: PersonRequest, slug: str) -> HttpResponse:
    """Show the agents that the person may ask, and which of them they may change."""
    frame = _enter(request, slug)
    services.default_agent(frame["workspace"])
    agents = Agent.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    editable = Agent.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    context = {
        "agents": agents.select_related("model").order_by("-is_default", "name"),
        "editable": set(editable.values_list("pk", flat=True)),
        "may_create": permissions.allows("create_agent", frame["role"]),
    }
    return render(request, "agents/list_agents.html", {**frame, **context})


@require_http_methods(["GET", "POST"])
@login_required
def create_agent(request: PersonRequest, slug: str) -> HttpResponse:
    """Make an agent; a form that does not fit comes back with 422."""
    frame = _enter(request, slug)
    permissions.require("create_agent", actor=request.user, workspace=frame["workspace"])
    kind = {"workspace": frame["workspace"], "actor": request.user}
    if request.method == "GET":
        initial = {"tools": list(services.DEFAULT_TOOLS), "all_knowledge_bases": True, "memory": True}
        return render(request, "agents/edit_agent.html", {**frame, "form": AgentForm(initial=initial, **kind)})
    form = AgentForm(request.POST, **kind)
    if form.is_valid():
        try:
            agent = editing.create_agent(workspace=frame["workspace"], values=form.values(), actor=request.user)
        except AgentNameTaken as error:
            form.add_error("name", error.message)
        else:
            messages.success(request, _("“%(name)s” was created. Try it.") % {"name": agent.name})
            return redirect("agents:edit-agent", slug, agent.pk)
    return render(request, "agents/edit_agent.html", {**frame, "form": form}, status=422)


@require_http_methods(["GET", "POST"])
@login_required
def edit_agent(request: PersonRequest, slug: str, agent_id: UUID) -> HttpResponse:
    """Show an agent's editor with its versions, or save it."""
    frame = _enter(request, slug)
    agent = _own(request, frame, agent_id)
    kind = {"workspace": frame["workspace"], "actor": request.user, "agent": agent}
    context = {**frame, "agent": agent, "versions": agent.versions.select_related("saved_by")[:20]}
    context["may_default"] = permissions.allows("add_model", frame["role"])
    if request.method == "GET":
        return render(
            request, "agents/edit_agent.html", {**context, "form": AgentForm(initial=initial_of(agent), **kind)}
        )
    form = AgentForm(request.POST, **kind)
    if form.is_valid():
        try:
            editing.save_agent(agent=agent, values=form.values(agent.configuration.get("filters")), actor=request.user)
        except AgentNameTaken as error:
            form.add_error("name", error.message)
        else:
            messages.success(request, _("Saved."))
            return redirect("agents:edit-agent", slug, agent.pk)
    return render(request, "agents/edit_agent.html", {**context, "form": form}, status=422)


@require_safe
@login_required
def show_version(request: PersonRequest, slug: str, version_id: UUID) -> HttpResponse:
    """Show what going back to a version would change."""
    frame = _enter(request, slug)
    version = _version(request, frame, version_id)
    now, then = editing.in_words([editing.snapshot_of(version.agent), version.snapshot], reader=request.user)
    lines = [(LABELS.get(field, field), changed) for field, changed in editing.changes(now, then)]
    context = {"version": version, "agent": version.agent, "changes": lines}
    return render(request, "agents/show_version.html", {**frame, **context})


@require_POST
@login_required
def restore_version(request: PersonRequest, slug: str, version_id: UUID) -> HttpResponse:
    """Save an agent again as it was."""
    frame = _enter(request, slug)
    version = _version(request, frame, version_id)
    editing.restore_version(version=version, actor=request.user)
    messages.success(request, _("The agent is as it was in version %(n)d.") % {"n": version.number})
    return redirect("agents:edit-agent", slug, version.agent_id)


@require_POST
@login_required
def duplicate_agent(request: PersonRequest, slug: str, agent_id: UUID) -> HttpResponse:
    """Make another agent like this one."""
    frame = _enter(request, slug)
    agent = editing.duplicate_agent(agent=_own(request, frame, agent_id), actor=request.user)
    return redirect("agents:edit-agent", slug, agent.pk)


@require_POST
@login_required
def make_default(request: PersonRequest, slug: str, agent_id: UUID) -> HttpResponse:
    """Let new questions go to this agent."""
    frame = _enter(request, slug)
    editing.make_default(agent=_own(request, frame, agent_id), actor=request.user)
    return redirect("agents:list-agents", slug)


@require_POST
@login_required
def delete_agent(request: PersonRequest, slug: str, agent_id: UUID) -> HttpResponse:
    """Delete an agent; its conversations stay."""
    frame = _enter(request, slug)
    editing.delete_agent(agent=_own(request, frame, agent_id), actor=request.user)
    messages.success(request, _("The agent was deleted. Its conversations stay."))
    return redirect("agents:list-agents", slug)


def _version(request: PersonRequest, frame: dict[str, Any], version_id: UUID) -> AgentVersion:
    mine = AgentVersion.objects.editable_by(request.user).filter(agent__workspace=frame["workspace"])
    return get_object_or_404(mine.select_related("agent__workspace"), pk=version_id)
