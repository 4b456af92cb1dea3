"""Who may do what: the one table of acts that have no row yet.

Acts on a row are decided by its door (``visible_to``, ``editable_by``).
"""

from django.contrib.auth.models import AnonymousUser

from apps.common.errors import NotAllowed, NotFound
from apps.workspaces.models import Membership, Role, User, Workspace

ACTS: dict[str, frozenset[Role]] = {
    "create_knowledge_base": frozenset({Role.OWNER, Role.ADMIN, Role.MEMBER}),
    "create_agent": frozenset({Role.OWNER, Role.ADMIN, Role.MEMBER}),
    "ask": frozenset(Role),
    "run_evaluation": frozenset({Role.OWNER, Role.ADMIN, Role.MEMBER}),
    "add_model": frozenset({Role.OWNER, Role.ADMIN}),
    "set_budget": frozenset({Role.OWNER, Role.ADMIN}),
}


def role_of(user: User | AnonymousUser, workspace: Workspace) -> Role | None:
    """Return the person's role in a workspace, or None if they are not in it."""
    if not user.is_authenticated:
        return None
    found = Membership.objects.filter(workspace=workspace, user_id=user.pk, user__is_active=True).first()
    return Role(found.role) if found else None


def allows(act: str, role: Role | None) -> bool:
    """Return whether a role includes an act; pages ask, to offer only what will work."""
    return role in ACTS[act]


def require(act: str, *, actor: User | AnonymousUser, workspace: Workspace) -> None:
    """Let the act pass or raise.

    Raises:
        NotFound: the actor is not in the workspace (it must look as if there were none).
        NotAllowed: they are, but their role does not include the act.
    """
    role = role_of(actor, workspace)
    if role is None:
        raise NotFound
    if not allows(act, role):
        raise NotAllowed
