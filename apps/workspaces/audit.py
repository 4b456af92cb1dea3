"""Write the audit log: who did, saw or asked what, when, from where, under which right.

Services record what changes, in the transaction that changes it; views record what was opened or
downloaded. Ids and names of things go in, never contents.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from apps.common import logs
from apps.common.database import in_db, insert, run, set_local
from apps.workspaces import rights
from apps.workspaces.doors import DoorQuery
from apps.workspaces.models import AuditEvent
from apps.workspaces.principals import Principal, Who

SUPPORT = "support"  # an operator's visit
OF_OPERATORS = ("operator", SUPPORT)  # rights that nobody has but by being one
PAGE = 500  # events that an export holds at a time
BELOW_MANAGERS = ("member", "viewer")
COLUMNS = (
    *("id", "at", "kind", "actor_id", "credential_id", "action"),
    *("target_kind", "target_id", "target_name", "right", "ip", "details"),
)
ROLE = DoorQuery(lambda who, place: rights.memberships(who).filter(workspace=place).values("role", "support_until"))


def record(
    action: str,
    *,
    who: Who | None,
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
        right: the role that allowed it, or more than that; looked up if it is not given.
        details: more, as JSON.
    """
    principal = Principal.of(who)
    right = _by_share(right or right_of(principal, workspace_id), target)
    event = _event(action, principal, workspace_id, target, name, right, details)
    insert(event)


def _event(
    action: str,
    principal: Principal,
    workspace_id: UUID | None,
    target: Model | None,
    name: str,
    right: str,
    details: dict[str, Any],
) -> AuditEvent:
    return AuditEvent(
        workspace_id=workspace_id,
        kind=_kind_of(principal, right),
        actor_id=principal.user_id,
        credential_id=principal.key_id or principal.widget_id,
        action=action,
        target_kind=str(target._meta.model_name) if target is not None else "",
        target_id=target.pk if target is not None and isinstance(target.pk, UUID) else None,
        target_name=name[:255],
        right=right,
        at=timezone.now(),
        ip=logs.client_ip.get(),
        details=details,
    )


def _by_share(role: str, target: Any) -> str:
    """Return the right by which a member reads or changes a row: a share, where the role alone does not open it."""
    if role not in BELOW_MANAGERS:
        return role
    return f"{role}, share" if getattr(target, "is_shut", getattr(target, "restricted", False)) else role


def _kind_of(principal: Principal, right: str) -> str:
    if right in OF_OPERATORS and principal.kind == "person":
        return AuditEvent.Kind.OPERATOR
    return AuditEvent.Kind.SYSTEM if principal.kind == "nobody" else principal.kind


def did(action: str, row: Any, *, who: Who | None, **details: Any) -> None:
    """Add that somebody changed a row that they may manage, in the transaction that does it."""
    place = row.workspace_id
    role = right_of(Principal.of(who), place)
    right = f"{role}, share" if role in BELOW_MANAGERS else role
    right = right if place else "operator"  # what belongs to no workspace, operators alone may change
    record(action, who=who, workspace_id=place, target=row, name=getattr(row, "name", ""), right=right, **details)


def opened(row: Any, *, who: Who, action: str = "document.opened", **details: Any) -> None:
    """Add that somebody read a row, of which the log keeps the name where it has one."""
    place = getattr(row, "workspace_id", None) or row.conversation.workspace_id
    record(action, who=who, workspace_id=place, target=row, name=getattr(row, "name", ""), **details)


def opened_all(rows: Iterable[Any], *, who: Who, action: str = "document.opened", **details: Any) -> None:
    """Add that somebody read rows of one kind at once, one event for each of them."""
    principal, roles = Principal.of(who), dict[UUID, str]()
    events = []
    for row in rows:
        role = roles.get(row.workspace_id) or roles.setdefault(row.workspace_id, right_of(principal, row.workspace_id))
        right = _by_share(role, row)
        events.append(_event(action, principal, row.workspace_id, row, getattr(row, "name", ""), right, details))
    AuditEvent.objects.bulk_create(events)


def right_of(principal: Principal, workspace_id: UUID | None) -> str:
    """Return the role that one acts by in a workspace; "support" is an operator's visit."""
    if workspace_id is None or principal.user_id is None:
        return ""
    found = run(*ROLE.statement(principal, place=workspace_id))
    return next((SUPPORT if visit else str(role) for role, visit in found), "")


# Part of the statement that begins a turn: no question is begun without its entry. The right is looked up there.
ASKED = """
    INSERT INTO workspaces_auditevent (
        id, at, workspace_id, kind, actor_id, credential_id, action, target_kind, target_id, target_name, "right", ip,
        details)
    SELECT gen_random_uuid(), now(), place.workspace_id,
        CASE WHEN m.support_until IS NULL THEN %s ELSE 'operator' END, %s::uuid, %s::uuid, 'question.asked', %s,
        %s::uuid, '', CASE WHEN m.support_until IS NULL THEN coalesce(m.role, '') ELSE 'support' END, %s::inet, '{{}}'
    FROM ({place}) AS place
    LEFT JOIN workspaces_membership m ON m.workspace_id = place.workspace_id AND m.user_id = %s::uuid
"""


def asked_statement(turn: type[Model], turn_id: UUID, *, who: Who, place: str) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that adds that somebody asked a question; which one says the turn, until it is erased.

    ``place`` selects the one ``workspace_id`` where it was asked, or no row where it was not.
    """
    principal = Principal.of(who)
    user = principal.user_id
    credential, kind = principal.key_id or principal.widget_id, turn._meta.model_name
    return ASKED.format(place=place), (principal.kind, user, credential, kind, turn_id, logs.client_ip.get(), user)


async def as_lines(events: QuerySet[AuditEvent], *, allowed: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield events as JSON lines, the oldest first, a page at a time: however many there are, PAGE are in memory.

    Args:
        events: behind the reader's door, which each page asks anew.
        allowed: raises where the reader may not go on; asked before each page, so that a right which is withdrawn
            breaks the transfer off instead of ending the file as if it were whole.
    """
    after: dict[str, Any] | None = None
    while page := await in_db(_page, events, after, allowed):
        yield b"".join(orjson.dumps(event, default=str, option=orjson.OPT_APPEND_NEWLINE) for event in page)
        if len(page) < PAGE:
            return
        after = page[-1]


def _page(
    events: QuerySet[AuditEvent], after: dict[str, Any] | None, allowed: Callable[[], None]
) -> list[dict[str, Any]]:
    allowed()
    if after is not None:
        events = events.filter(at__gte=after["at"]).exclude(at=after["at"], pk__lte=after["id"])
    return list(events.order_by("at", "pk").values(*COLUMNS)[:PAGE])


def forget_person(user: Any) -> None:
    """Take the address of a person who ends their account out of the log, inside that transaction; ids stay."""
    of_people = Q(target_id=user.pk) | Q(action__startswith="invitation.") | Q(action="quota.set")
    set_local("knowsphere.forgetting", user.email)
    AuditEvent.objects.filter(of_people, target_name=user.email).update(target_name="")
    set_local("knowsphere.forgetting", "")


def forget_workspace(workspace_id: UUID) -> None:
    """Erase the log of a workspace that is erased whole, inside that transaction."""
    set_local("knowsphere.erasing", str(workspace_id))
    AuditEvent.objects.filter(workspace=workspace_id).delete()
    set_local("knowsphere.erasing", "")
