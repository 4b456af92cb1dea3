"""Write the audit log: who did, saw or asked what, when, from where, under which right.

Services record what changes, in the transaction that changes it; views record what was opened or
downloaded. Ids and names of things go in, never contents.
"""

from typing import Any
from uuid import UUID

from django.db.models import Model

from apps.common import logs
from apps.common.database import set_local
from apps.workspaces import rights
from apps.workspaces.models import AuditEvent
from apps.workspaces.principals import Principal, Who


def record(
    action: str,
    *,
    who: Who,
    workspace_id: UUID | None,
    target: Model | None = None,
    name: str = "",
    right: str = "",
    **details: Any,
) -> None:
    """Add one event.

    Args:
        action: what was done, as "thing.done": "document.opened".
        who: who did it.
        workspace_id: where; None for what concerns no workspace.
        target: on what.
        name: what it is called, where it has a name people know.
        right: the role or share that allowed it; looked up if it is not given.
        details: more, as JSON.
    """
    principal = Principal.of(who)
    AuditEvent.objects.create(
        workspace_id=workspace_id,
        kind=AuditEvent.Kind.SYSTEM if principal.kind == "nobody" else principal.kind,
        actor_id=principal.user_id,
        credential_id=principal.key_id or principal.widget_id,
        action=action,
        target_kind=str(target._meta.verbose_name) if target is not None else "",
        target_id=target.pk if target is not None and isinstance(target.pk, UUID) else None,
        target_name=name[:255],
        right=right or right_of(principal, workspace_id),
        ip=logs.client_ip.get(),
        details=details,
    )


def opened(row: Any, *, who: Who, right: str, action: str = "document.opened", **details: Any) -> None:
    """Add that somebody read a row, of which the log keeps the name where it has one."""
    place = getattr(row, "workspace_id", None) or row.conversation.workspace_id
    record(action, who=who, workspace_id=place, target=row, name=getattr(row, "name", ""), right=right, **details)


def right_of(principal: Principal, workspace_id: UUID | None) -> str:
    """Return the role that one acts by in a workspace; "support" is an operator's visit."""
    if workspace_id is None or principal.user_id is None:
        return ""
    found = rights.memberships(principal).filter(workspace=workspace_id).first()
    if found is None:
        return ""
    return "support" if found.support_until else str(found.role)


def forget_workspace(workspace_id: UUID) -> None:
    """Erase the log of a workspace that is erased whole, inside that transaction."""
    set_local("knowsphere.erasing", str(workspace_id))
    AuditEvent.objects.filter(workspace=workspace_id).delete()
    set_local("knowsphere.erasing", "")
