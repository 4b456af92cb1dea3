"""The end of a workspace, and of a person's account."""

from django.db import transaction
from django.utils import timezone

from apps.common.errors import NotFound
from apps.workspaces import audit
from apps.workspaces.errors import LastOwner
from apps.workspaces.models import ApiKey, Invitation, Membership, Role, User, Workspace
from apps.workspaces.permissions import require
from apps.workspaces.services.people import remove_member
from apps.workspaces.services.sharing import share_models


@transaction.atomic
def delete_workspace(*, workspace: Workspace, actor: User) -> None:
    """Close a workspace to everybody, widgets and keys included; ``erasing`` then erases what is in it.

    Raises:
        NotFound, NotAllowed: by the actor's role.
    """
    require("own_workspace", actor=actor, workspace=workspace)
    audit.record("workspace.deleted", who=actor, workspace_id=workspace.pk, target=workspace, name=workspace.name)
    for model in share_models():
        model.objects.filter(content_object__workspace=workspace.pk).delete()
    for closed in (ApiKey, Invitation, Membership):
        closed.objects.filter(workspace=workspace.pk).delete()
    Workspace.objects.filter(pk=workspace.pk).update(deleted_at=timezone.now(), slug=f"deleted-{workspace.pk.hex}")


@transaction.atomic
def delete_person(*, user: User) -> None:
    """End a person's account: they are out everywhere at once, and all that is theirs alone is then erased.

    Workspaces that only they are in go too. What they gave to others' workspaces, such as documents,
    stays there without their name; the audit log keeps their id, and their address nowhere.

    Raises:
        LastOwner: a workspace with other people in it would have no owner.
        NotFound: they are gone already.
    """
    person = User.objects.select_for_update().filter(pk=user.pk, deleted_at__isnull=True).first()
    if person is None:
        raise NotFound
    for membership in Membership.objects.filter(user=person).select_related("workspace", "user"):
        here = Membership.objects.filter(workspace=membership.workspace, support_until__isnull=True)
        others = here.exclude(user=person)  # an operator's visit is nobody's home
        if membership.role == Role.OWNER and not others.exists():
            delete_workspace(workspace=membership.workspace, actor=person)
        elif membership.role == Role.OWNER and not others.filter(role=Role.OWNER, user__is_active=True).exists():
            raise LastOwner
        else:
            remove_member(membership=membership, actor=person)
    audit.forget_person(person)
    Invitation.objects.filter(email=person.email).delete()
    _forget_sign_ins(person.email)
    person.email = f"deleted-{person.pk.hex}@deleted.invalid"
    person.name, person.is_active, person.is_staff, person.is_superuser = "", False, False, False
    person.deleted_at = timezone.now()
    person.set_unusable_password()
    person.save()


def _forget_sign_ins(address: str) -> None:
    """Erase what the guard against guessing keeps of sign-ins: addresses, browsers, places in the net."""
    from axes.models import AccessAttempt, AccessFailureLog, AccessLog  # its app is loaded after ours

    for kind in (AccessAttempt, AccessFailureLog, AccessLog):
        kind.objects.filter(username__iexact=address).delete()
