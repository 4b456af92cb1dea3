"""Who may do what: the one table of acts that have no row yet.

Acts on a row are decided by its door (``visible_to``, ``editable_by``).
"""

from dataclasses import dataclass

from apps.common.errors import NotAllowed, NotFound
from apps.workspaces import rights
from apps.workspaces.models import Role, Workspace
from apps.workspaces.principals import Principal, Who

MANAGERS = frozenset({Role.OWNER, Role.ADMIN})
MEMBERS = MANAGERS | {Role.MEMBER}
ALL = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Act:
    """The roles that include an act, and the scope that a key needs for it."""

    roles: frozenset[Role]
    scope: str


ACTS: dict[str, Act] = {
    "create_knowledge_base": Act(MEMBERS, "knowledge:write"),
    "create_agent": Act(MEMBERS, "agents:write"),
    "ask": Act(ALL, "conversations:write"),
    "leave": Act(ALL, "workspace:write"),
    "share_outside": Act(MEMBERS, "conversations:write"),
    "create_dataset": Act(MEMBERS, "evaluations:write"),
    "run_evaluation": Act(MEMBERS, "evaluations:write"),
    "add_model": Act(MANAGERS, "models:write"),
    "set_budget": Act(MANAGERS, "models:write"),
    "manage_synonyms": Act(MANAGERS, "knowledge:write"),
    "create_api_key": Act(ALL, "workspace:write"),
    "manage_people": Act(MANAGERS, "workspace:write"),
    "manage_widgets": Act(MANAGERS, "workspace:write"),
    "see_audit_log": Act(MANAGERS, "workspace:read"),
    "own_workspace": Act(frozenset({Role.OWNER}), "workspace:write"),
}


def role_of(who: Who, workspace: Workspace) -> Role | None:
    """Return somebody's role in a workspace, or None if they are not in it."""
    found = rights.memberships(who).filter(workspace=workspace).first()
    return Role(found.role) if found else None


def allows(act: str, role: Role | None) -> bool:
    """Return whether a role includes an act; pages ask, to offer only what will work."""
    return role in ACTS[act].roles


def require(act: str, *, actor: Who, workspace: Workspace) -> None:
    """Let the act pass or raise.

    Raises:
        NotFound: the actor is not in the workspace (it must look as if there were none).
        NotAllowed: they are, but their role, or their key's scopes, do not include the act.
    """
    role = role_of(actor, workspace)
    if role is None:
        raise NotFound
    if not allows(act, role) or not Principal.of(actor).may(ACTS[act].scope):
        raise NotAllowed
