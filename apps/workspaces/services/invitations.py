"""Invitations: a link that lets one person in, sent where mail can be sent, to copy where not."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.errors import NotAllowed, NotFound
from apps.workspaces import audit
from apps.workspaces.errors import InvitationForAnother, InvitationNotUsable, TooManyInvitations
from apps.workspaces.models import Department, DepartmentMember, Invitation, Membership, Role, User, Workspace
from apps.workspaces.permissions import MANAGERS, require, role_of

LASTS = timedelta(days=14)
MOST_A_DAY = 200  # of a workspace, and of a person: they go into the mailboxes of people who did not ask for it


@transaction.atomic
def invite(
    *, workspace: Workspace, email: str, role: Role, actor: User, department: Department | None = None
) -> tuple[Invitation, str]:
    """Make an invitation; return it and the link, which nobody can look up again. Mail goes out on commit.

    Raises:
        NotFound, NotAllowed: by the actor's role; owners alone invite owners.
        TooManyInvitations: the workspace has sent as many today as it may.
    """
    require("manage_people", actor=actor, workspace=workspace)
    if role == Role.OWNER and role_of(actor, workspace) != Role.OWNER:
        raise NotAllowed
    if department is not None and department.workspace_id != workspace.pk:
        raise NotFound
    made = Q(workspace=workspace) | Q(invited_by=actor)
    today = Invitation.objects.filter(made, created_at__gt=timezone.now() - timedelta(days=1))
    if today.count() >= MOST_A_DAY:
        raise TooManyInvitations(limit=MOST_A_DAY)
    token = secrets.token_urlsafe(24)
    invitation = Invitation.objects.create(
        workspace=workspace,
        email=email.strip().lower(),
        role=role,
        department=department,
        digest=digest_of(token),
        invited_by=actor,
        expires_at=timezone.now() + LASTS,
    )
    audit.record(
        "invitation.made", who=actor, workspace_id=workspace.pk, target=invitation, name=invitation.email, role=role
    )
    link = settings.SITE_URL + reverse("workspaces:show-invitation", args=[token])
    if invitation.email and settings.SENDS_MAIL:
        transaction.on_commit(lambda: _send(invitation, link))
    return invitation, link


def usable(token: str) -> Invitation:
    """Return the open invitation of a token. Raises InvitationNotUsable."""
    found = Invitation.objects.open().filter(digest=digest_of(token))
    invitation = found.select_related("workspace", "invited_by").first()
    if invitation is None or not _may_still_invite(invitation):
        raise InvitationNotUsable
    return invitation


@transaction.atomic
def accept(*, token: str, actor: User) -> Workspace:
    """Let the actor in. Two who race for one link: one of them gets in. Members keep their role, visitors get one.

    Raises:
        InvitationNotUsable: it is used, withdrawn, expired, was never made, or who made it may not invite any more.
        InvitationForAnother: it names another address.
    """
    invitation = usable(token)
    if invitation.email and invitation.email != actor.email:
        raise InvitationForAnother(email=invitation.email)
    taken = Invitation.objects.open().filter(pk=invitation.pk)
    if not taken.update(accepted_at=timezone.now(), accepted_by=actor):
        raise InvitationNotUsable
    membership, _made = Membership.objects.get_or_create(
        workspace=invitation.workspace, user=actor, defaults={"role": invitation.role}
    )
    visits = Membership.objects.filter(pk=membership.pk, support_until__isnull=False)
    visits.update(role=invitation.role, support_until=None)
    if invitation.department_id:
        DepartmentMember.objects.get_or_create(department_id=invitation.department_id, membership=membership)
    place = invitation.workspace
    audit.record("invitation.accepted", who=actor, workspace_id=place.pk, target=invitation, name=actor.email)
    return place


def withdraw_invitation(*, invitation: Invitation, actor: User) -> None:
    """End an invitation that came through ``editable_by``."""
    if Invitation.objects.open().filter(pk=invitation.pk).update(revoked_at=timezone.now()):
        place = invitation.workspace_id
        audit.record("invitation.withdrawn", who=actor, workspace_id=place, target=invitation, name=invitation.email)


def _may_still_invite(invitation: Invitation) -> bool:
    roles = {Role.OWNER} if invitation.role == Role.OWNER else MANAGERS
    members = Membership.objects.filter(workspace=invitation.workspace_id, user__is_active=True, role__in=roles)
    return invitation.invited_by_id is not None and members.filter(user=invitation.invited_by_id).exists()


def digest_of(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _send(invitation: Invitation, link: str) -> None:
    place, inviter = invitation.workspace.name, invitation.invited_by
    facts = {"workspace": place, "inviter": inviter.shown_name if inviter else "", "link": link}
    text = render_to_string("workspaces/email/invitation.txt", facts)
    subject = " ".join((_("Invitation to %(workspace)s") % {"workspace": place}).split())
    send_mail(subject, text, None, [invitation.email], fail_silently=True)
