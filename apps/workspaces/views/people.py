"""Pages of members and invitations."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.common.errors import InvalidInput
from apps.workspaces import permissions, services
from apps.workspaces.accounts import ask_again
from apps.workspaces.forms import ROLES, InvitationForm, RoleForm
from apps.workspaces.models import Department, DepartmentMember, Invitation, Membership, Role
from apps.workspaces.pages import NO_ROW, PersonRequest, enter
from apps.workspaces.services import invitations

ROWS = 25


@require_safe
@login_required
def list_members(request: PersonRequest, slug: str) -> HttpResponse:
    """List the people of a workspace; those who manage it also see invitations."""
    return render(request, "workspaces/list_members.html", _members(request, enter(request, slug)))


@require_POST
@login_required
def invite(request: PersonRequest, slug: str) -> HttpResponse:
    """Make an invitation and show its link, this once."""
    frame = enter(request, slug)
    permissions.require("manage_people", actor=request.user, workspace=frame["workspace"])
    form = InvitationForm(request.POST, departments=_departments(request, frame))
    if not form.is_valid():
        return render(request, "workspaces/list_members.html", _members(request, frame, form=form), status=422)
    given = {**form.cleaned_data, "role": Role(form.cleaned_data["role"])}
    invitation, link = services.invite(workspace=frame["workspace"], actor=request.user, **given)
    context = _members(request, frame) | {"link": link, "invited": invitation}
    return render(request, "workspaces/list_members.html", context)


@require_POST
@login_required
def withdraw_invitation(request: PersonRequest, slug: str, invitation_id: UUID) -> HttpResponse:
    """End an invitation."""
    frame = enter(request, slug)
    mine = Invitation.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    services.withdraw_invitation(invitation=get_object_or_404(mine, pk=invitation_id), actor=request.user)
    return redirect("workspaces:list-members", slug)


@require_POST
@login_required
def change_role(request: PersonRequest, slug: str, membership_id: UUID) -> HttpResponse:
    """Give a member another role."""
    member, form = _managed(request, slug, membership_id), RoleForm(request.POST)
    if not form.is_valid():
        raise InvalidInput(field="role", reason=_("choose one of those offered"))
    services.change_role(membership=member, role=Role(form.cleaned_data["role"]), actor=request.user)
    messages.success(request, _("The role was changed. It counts at once."))
    return redirect("workspaces:list-members", slug)


@require_POST
@login_required
def remove_member(request: PersonRequest, slug: str, membership_id: UUID) -> HttpResponse:
    """Take a person out of the workspace."""
    member = _managed(request, slug, membership_id)
    if "ask" in request.POST:
        return _ask(request, slug, member, "remove")
    services.remove_member(membership=member, actor=request.user)
    messages.success(request, _("Removed. What they had open here shows nothing more."))
    return redirect("workspaces:home") if member.user == request.user else redirect("workspaces:list-members", slug)


@require_POST
@login_required
def transfer_workspace(request: PersonRequest, slug: str, membership_id: UUID) -> HttpResponse:
    """Make a member the owner."""
    member = _managed(request, slug, membership_id)
    if "ask" in request.POST:
        return _ask(request, slug, member, "transfer")
    permissions.require("own_workspace", actor=request.user, workspace=member.workspace)
    ask_again(request)
    services.transfer_workspace(membership=member, actor=request.user)
    messages.success(request, _("The workspace was handed over. You are an admin of it now."))
    return redirect("workspaces:list-members", slug)


def _question(act: str, slug: str, *, pk: UUID, name: str) -> dict[str, str]:
    """Return what is asked before a member is acted on: ``name`` may be a place for it, where one dialog serves all."""
    if act == "remove":
        title, verb, view = _("Remove %(name)s?"), _("Remove"), "workspaces:remove-member"
        sentence = _(
            "What was shared with them here is withdrawn and their keys to this workspace end, at once. "
            "Their documents stay."
        )
    else:
        title, verb, view = _("Make %(name)s the owner?"), _("Hand over"), "workspaces:transfer-workspace"
        sentence = _("You become an admin. Only the new owner can give the workspace back.")
    action = reverse(view, args=[slug, pk])
    return {"id": act, "title": title % {"name": name}, "sentence": sentence, "verb": verb, "action": action}


def _ask(request: PersonRequest, slug: str, member: Membership, act: str) -> HttpResponse:
    """Ask on a page of its own, where no script opened the dialog."""
    question = _question(act, slug, pk=member.pk, name=member.user.shown_name)
    return render(request, "workspaces/ask_first.html", {**enter(request, slug), "question": question})


@require_POST
@login_required
def leave_workspace(request: PersonRequest, slug: str) -> HttpResponse:
    """Leave a workspace."""
    frame = enter(request, slug)
    services.leave_workspace(workspace=frame["workspace"], actor=request.user)
    messages.success(request, _("You left “%(name)s”.") % {"name": frame["workspace"].name})
    return redirect("workspaces:home")


@require_safe
def show_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Say who invites whom to what; whoever is signed out signs in or up first."""
    invitation = invitations.usable(token)
    request.session["invitation"] = token  # opens sign-up where it is by invitation only
    return render(request, "workspaces/show_invitation.html", {"invitation": invitation, "token": token})


@require_POST
@login_required
def accept_invitation(request: PersonRequest, token: str) -> HttpResponse:
    """Join the workspace that one was invited to."""
    workspace = services.accept(token=token, actor=request.user)
    request.session.pop("invitation", None)
    return redirect("conversations:new-question", workspace.slug)


def _members(request: PersonRequest, frame: dict[str, Any], form: InvitationForm | None = None) -> dict[str, Any]:
    members = Membership.objects.visible_to(request.user).running().filter(workspace=frame["workspace"])
    order = ("user__name", "user__email")
    held = Prefetch("departments", DepartmentMember.objects.visible_to(request.user).select_related("department"))
    page = Paginator(members.select_related("user").prefetch_related(held).order_by(*order), ROWS)
    context = {**frame, "page": page.get_page(request.GET.get("page")), "section": "people", "roles": ROLES}
    context["may_manage"] = permissions.allows("manage_people", frame["role"])
    if context["may_manage"]:
        acts = ("transfer", "remove") if frame["role"] == Role.OWNER else ("remove",)
        context["questions"] = [_question(act, frame["workspace"].slug, pk=NO_ROW, name="{}") for act in acts]
        context["form"] = form or InvitationForm(departments=_departments(request, frame))
        waiting = Invitation.objects.visible_to(request.user).open().filter(workspace=frame["workspace"])
        context["invitations"] = waiting.select_related("invited_by").order_by("-created_at")[:ROWS]
    return context


def _departments(request: PersonRequest, frame: dict[str, Any]) -> Any:
    return Department.objects.visible_to(request.user).filter(workspace=frame["workspace"]).order_by("name")


def _managed(request: PersonRequest, slug: str, membership_id: UUID) -> Membership:
    frame = enter(request, slug)
    mine = Membership.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return get_object_or_404(mine.select_related("user", "workspace"), pk=membership_id)
