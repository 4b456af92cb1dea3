"""Who may read and manage what, as SQL: the one place that every door of every app rests on.

``read`` and ``manage`` give conditions on rows that can be shared (they have ``workspace`` and
``restricted``, and a Share model); ``workspaces`` gives the workspaces for rows that cannot. All of
it runs inside the statement that it guards, so a right that was withdrawn a moment ago counts no
more. Nothing here looks at an id in Python: what is compiled for one person fits all.
"""

from collections.abc import Collection
from typing import Any

from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, UUIDField

from apps.workspaces.models import ApiKey, DepartmentMember, Membership, Role, Share
from apps.workspaces.principals import Principal, Who

MANAGERS = (Role.OWNER, Role.ADMIN)
NOTHING = Q(pk__in=[])


def memberships(who: Who, roles: Collection[Role] = ()) -> QuerySet[Membership]:
    """Select the memberships that count for ``who``: none of a locked person, none by a key that ended."""
    principal = Principal.of(who)
    if principal.user_id is None:
        return Membership.objects.none()
    found = Membership.objects.running().filter(user_id=principal.user_id, user__is_active=True)
    if roles:
        found = found.filter(role__in=roles)
    if principal.workspace_id is not None:
        found = found.filter(workspace_id=principal.workspace_id)
    if principal.key_id is not None:
        key = ApiKey.objects.living().filter(
            pk=principal.key_id, user=OuterRef("user"), workspace=OuterRef("workspace")
        )
        found = found.filter(Exists(key))
    return found


def workspaces(who: Who, scope: str, roles: Collection[Role] = ()) -> QuerySet[Membership, Any]:
    """Select the ids of the workspaces that ``who`` is in (with one of the roles), for ``workspace__in``."""
    allowed = Principal.of(who).may(scope)
    return (memberships(who, roles) if allowed else Membership.objects.none()).values("workspace")


def read(who: Who, scope: str, shares: type[Share]) -> Q:
    """Return the condition that ``who`` may read a row that can be shared.

    Members of its workspace read what is not restricted; owners, admins and holders of a share also
    what is. A share counts only while its holder is in the workspace. A widget reads what was shared
    with it. Being an operator opens nothing.
    """
    principal = Principal.of(who)
    if not principal.may(scope):
        return NOTHING
    if principal.kind == "widget":
        return Q(granted(principal, shares), workspace=principal.workspace_id)
    return Q(_in_its_workspace(principal)) & (Q(restricted=False) | manages(principal, shares, "read"))


def manage(who: Who, scope: str, shares: type[Share]) -> Q:
    """Return the condition that ``who`` may manage a row that can be shared: change, delete, share it."""
    principal = Principal.of(who)
    if not principal.may(scope) or principal.user_id is None:
        return NOTHING
    return Q(_in_its_workspace(principal)) & manages(principal, shares, "manage")


def own(who: Who, scope: str) -> Q:
    """Return the condition that a row is one's own (its ``user``), in a workspace that one still belongs to.

    What belongs to a conversation of a widget's visitor has no person: whose it is says the
    conversation, by which the caller looks it up.
    """
    principal = Principal.of(who)
    if principal.kind == "widget" and principal.may(scope):
        return Q(user=None, workspace=principal.workspace_id)
    return Q(user=principal.user_id, workspace__in=workspaces(principal, scope))


def manages(principal: Principal, shares: type[Share], level: str) -> Q:
    """Return the condition that a member of the row's workspace holds ``level`` on it, whatever their scopes."""
    return Q(_in_its_workspace(principal, MANAGERS)) | Q(granted(principal, shares, level))


def granted(principal: Principal, shares: type[Share], level: str = "read") -> Exists:
    """Return whether a share of the row reaches ``principal``. It does not look whether they are in the workspace."""
    found = shares.objects.filter(content_object=OuterRef("pk"))
    if level == "manage":
        found = found.filter(permission__codename__startswith="manage_")
    if principal.kind == "widget":
        return Exists(found.filter(widget_id=principal.widget_id))
    more_than_viewer = memberships(principal, [*MANAGERS, Role.MEMBER]).filter(
        workspace=OuterRef(OuterRef("workspace"))
    )
    mine = Q(user=principal.user_id) | Q(department__in=_departments(principal)) | Q(role=Role.VIEWER)
    return Exists(found.filter(mine | (Q(role=Role.MEMBER) & Q(Exists(more_than_viewer)))))


def _in_its_workspace(principal: Principal, roles: Collection[Role] = ()) -> Exists:
    return Exists(memberships(principal, roles).filter(workspace=OuterRef("workspace")))


def _departments(principal: Principal) -> QuerySet[DepartmentMember, Any]:
    """Select the departments that one is in, and all above them."""
    above = Func(F("department__lineage"), function="unnest", output_field=UUIDField(), set_returning=True)
    own = DepartmentMember.objects.filter(membership__in=memberships(principal).values("pk"))
    return own.annotate(above=above).values("above")
