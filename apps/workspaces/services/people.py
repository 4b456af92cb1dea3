"""People and workspaces: made, joined, left, handed over."""

import secrets
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from apps.common.errors import InvalidInput, NotAllowed, NotFound
from apps.common.text import display_name, legible
from apps.common.zones import zone_of
from apps.workspaces import audit
from apps.workspaces.errors import LastOwner
from apps.workspaces.models import ApiKey, Invitation, Membership, Role, User, Workspace
from apps.workspaces.permissions import MANAGERS, require, role_of
from apps.workspaces.services.keys import revoke_api_key
from apps.workspaces.services.sharing import forget_person

# First path segments that are routes, so no workspace may have them as its slug.
RESERVED_SLUGS = frozenset(
    {"accounts", "admin", "api", "healthz", "readyz", "i18n", "static", "media", "ws", "widget"}
    | {"new", "help", "v1", "mcp", "manifest", "files", "invitations", "account", "shared", "s"}
)
SUPPORT_LASTS = timedelta(hours=4)


@transaction.atomic
def create_workspace(*, name: str, owner: User, slug: str = "") -> Workspace:
    """Create a workspace with one owner; the slug is made from the name unless it is given and free."""
    name = display_name(name, limit=100)
    wanted = slugify(slug or name)[:40] or "team"
    while wanted in RESERVED_SLUGS or Workspace.objects.filter(slug=wanted).exists():
        wanted = f"{wanted[:40].rstrip('-')}-{secrets.token_hex(3)}"
    workspace = Workspace.objects.create(name=name, slug=wanted)
    Membership.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
    audit.record("workspace.created", who=owner, workspace_id=workspace.pk, target=workspace, name=name, right="owner")
    return workspace


@transaction.atomic
def change_workspace(*, workspace: Workspace, actor: User, **changes: Any) -> None:
    """Change ``name``, ``keep_conversations_days`` or ``keep_audit_days`` (None: for ever).

    Raises:
        NotFound, NotAllowed: by the actor's role.
        InvalidInput: the name is empty.
    """
    require("manage_people", actor=actor, workspace=workspace)
    if "name" in changes:
        if not legible(changes["name"]).strip():
            raise InvalidInput(field="name", reason="it is empty")
        changes["name"] = display_name(changes["name"], limit=100)
    Workspace.objects.filter(pk=workspace.pk).update(**changes)
    audit.record("workspace.changed", who=actor, workspace_id=workspace.pk, target=workspace, **changes)


def change_person(*, user: User, name: str, time_zone: str) -> None:
    """Change how a person is called and in which zone times are shown to them; empty: as the browser says.

    Raises:
        InvalidInput: there is no such zone.
    """
    if time_zone and zone_of(time_zone) is None:
        raise InvalidInput(field="time_zone", reason="there is no such zone")
    User.objects.filter(pk=user.pk).update(
        name=display_name(name, limit=100) if name.strip() else "", time_zone=time_zone
    )


@transaction.atomic
def set_membership(*, workspace: Workspace, user: User, role: Role) -> Membership:
    """Put a person into a workspace, or change their role there, without asking who wants it."""
    values = {"role": role, "support_until": None}
    membership, _ = Membership.objects.update_or_create(workspace=workspace, user=user, defaults=values)
    return membership


@transaction.atomic
def change_role(*, membership: Membership, role: Role, actor: User) -> None:
    """Give a member another role. Owners alone make and unmake owners.

    Raises:
        NotAllowed: an admin touches an owner, or makes one, or is none any more.
        NotFound: the member has left meanwhile.
        LastOwner: the workspace would have none.
    """
    _lock(membership.workspace_id)
    require("manage_people", actor=actor, workspace=membership.workspace)  # under the lock: as it is now
    _refresh(membership)
    if Role.OWNER in (role, membership.role):
        _require_owner(membership.workspace, actor)
    _keep_an_owner(membership, leaving=role != Role.OWNER)
    before, membership.role, membership.support_until = membership.role, role, None
    membership.save(update_fields=["role", "support_until"])
    _withdraw_invitations(membership.workspace_id, membership.user_id, role)
    _record("member.role_changed", membership, actor, before=before, role=role)


@transaction.atomic
def remove_member(*, membership: Membership, actor: User) -> None:
    """Take a person out of a workspace, with all that was shared with them there and their keys to it.

    Raises:
        NotAllowed: an admin removes an owner, or is none any more.
        NotFound: the member has left meanwhile.
        LastOwner: the workspace would have none.
    """
    _lock(membership.workspace_id)
    if membership.user_id != actor.pk:
        require("manage_people", actor=actor, workspace=membership.workspace)  # under the lock: as it is now
    _refresh(membership)
    if membership.role == Role.OWNER and membership.user_id != actor.pk:
        _require_owner(membership.workspace, actor)
    _keep_an_owner(membership, leaving=True)
    own = membership.user_id == actor.pk
    _record("member.left" if own else "member.removed", membership, actor, role=membership.role)
    forget_person(user_id=membership.user_id, workspace_id=membership.workspace_id)
    membership.user.api_keys.filter(workspace=membership.workspace_id).update(revoked_at=timezone.now())
    _withdraw_invitations(membership.workspace_id, membership.user_id, None)
    membership.delete()


def leave_workspace(*, workspace: Workspace, actor: User) -> None:
    """Leave a workspace. Raises NotFound; LastOwner: hand it over or delete it first."""
    require("leave", actor=actor, workspace=workspace)
    remove_member(membership=Membership.objects.get(workspace=workspace, user=actor), actor=actor)


@transaction.atomic
def transfer_workspace(*, membership: Membership, actor: User) -> None:
    """Hand a workspace over: the member becomes its owner, the actor an admin.

    Raises:
        NotAllowed: the actor does not own it.
        NotFound: the member has left meanwhile, or may not sign in.
    """
    _lock(membership.workspace_id)
    _require_owner(membership.workspace, actor)
    if membership.user_id == actor.pk:
        return
    heir = Membership.objects.filter(pk=membership.pk, user__is_active=True)
    if not heir.update(role=Role.OWNER, support_until=None):
        raise NotFound
    Membership.objects.filter(workspace=membership.workspace_id, user=actor).update(role=Role.ADMIN)
    _withdraw_invitations(membership.workspace_id, actor.pk, Role.ADMIN)
    _record("workspace.transferred", membership, actor)


@transaction.atomic
def set_active(*, user: User, active: bool, operator: User) -> None:
    """Lock a person out of everything, or let them in again; the logs of all their workspaces say so.

    Raises:
        NotAllowed: the one who acts is no operator, or it is themselves.
    """
    if not operator.is_staff or not operator.is_active or user.pk == operator.pk:
        raise NotAllowed
    User.objects.filter(pk=user.pk, deleted_at__isnull=True).update(is_active=active)
    action = "person.unlocked" if active else "person.locked"
    for place in Membership.objects.filter(user=user).values_list("workspace_id", flat=True):
        audit.record(action, who=operator, workspace_id=place, target=user, name=user.email, right="operator")


@transaction.atomic
def remove_second_steps(*, user: User, operator: User) -> int:
    """Take away the one-time codes and passkeys of somebody who has lost theirs; the password stays. Return how many.

    Raises:
        NotAllowed: the one who acts is no operator, or it is themselves.
    """
    from allauth.mfa.models import Authenticator  # its app is loaded after ours

    if not operator.is_staff or not operator.is_active or user.pk == operator.pk:
        raise NotAllowed
    gone: int = Authenticator.objects.filter(user=user).delete()[0]
    for place in Membership.objects.filter(user=user).values_list("workspace_id", flat=True):
        audit.record(
            "person.second_steps_removed", who=operator, workspace_id=place, target=user, name=user.email,
            right="operator",
        )  # fmt: skip
    return gone


@transaction.atomic
def end_ways_in(*, user: User) -> None:
    """End a person's keys, one-time codes and passkeys: what an account may hold that was not theirs so far."""
    from allauth.mfa.models import Authenticator  # its app is loaded after ours

    Authenticator.objects.filter(user=user).delete()
    for key in ApiKey.objects.living().filter(user=user):
        revoke_api_key(key=key, actor=user)


@transaction.atomic
def begin_support(*, workspace: Workspace, operator: User, reason: str) -> Membership:
    """Let an operator look at a workspace as a viewer for four hours; its log and its list of people say so.

    Raises:
        NotAllowed: the person is no operator.
        InvalidInput: no reason is given.
    """
    if not operator.is_staff or not operator.is_active:
        raise NotAllowed
    if not legible(reason).strip():
        raise InvalidInput(field="reason", reason="it is empty")
    membership, made = Membership.objects.get_or_create(
        workspace=workspace, user=operator, defaults={"role": Role.VIEWER, "support_until": _support_end()}
    )
    if not made and membership.support_until is not None:
        Membership.objects.filter(pk=membership.pk).update(support_until=_support_end())
    audit.record(
        "support.began",
        who=operator,
        workspace_id=workspace.pk,
        target=workspace,
        right="operator",
        reason=display_name(reason, limit=200),
    )
    return membership


def _support_end() -> Any:
    return timezone.now() + SUPPORT_LASTS


def _record(action: str, membership: Membership, actor: User, **details: Any) -> None:
    place = membership.workspace_id
    audit.record(action, who=actor, workspace_id=place, target=membership.user, name=membership.user.email, **details)


def _withdraw_invitations(workspace_id: UUID, user_id: UUID, role: Role | None) -> None:
    """End the open invitations that a person may not make any more, having this role now; None: none at all."""
    made = Invitation.objects.open().filter(workspace=workspace_id, invited_by=user_id)
    if role in MANAGERS:
        made = made.none() if role == Role.OWNER else made.filter(role=Role.OWNER)
    made.update(revoked_at=timezone.now())


def _lock(workspace_id: UUID) -> None:
    Workspace.objects.select_for_update().get(pk=workspace_id)


def _refresh(membership: Membership) -> None:
    """Read a membership as it is under the lock. Raises NotFound: they have left meanwhile."""
    try:
        membership.refresh_from_db()
    except Membership.DoesNotExist as error:
        raise NotFound from error


def _require_owner(workspace: Workspace, actor: User) -> None:
    if role_of(actor, workspace) != Role.OWNER:
        raise NotAllowed


def _keep_an_owner(membership: Membership, *, leaving: bool) -> None:
    if membership.role != Role.OWNER or not leaving:
        return
    others = Membership.objects.filter(workspace=membership.workspace_id, role=Role.OWNER, user__is_active=True)
    if not others.exclude(pk=membership.pk).exists():
        raise LastOwner
