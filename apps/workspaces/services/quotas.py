"""Quotas, counted by conditional updates: what does not fit is not counted, however many race for it."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils.translation import gettext as _

from apps.common.database import run
from apps.common.errors import NotFound
from apps.workspaces import audit
from apps.workspaces.errors import QuotaExceeded
from apps.workspaces.models import Membership, Quota, User, Workspace
from apps.workspaces.permissions import require

PERIODS = {Quota.Kind.UPLOADS: timedelta(hours=1), Quota.Kind.TURNS: timedelta(days=1)}

# One statement counts for the workspace and the person; a row that has no room is not touched, and not returned.
TAKE = """
INSERT INTO workspaces_quota AS q (id, workspace_id, user_id, kind, used, began_at)
SELECT t.id, %(workspace)s, t.person, %(kind)s, %(amount)s, now()
FROM (VALUES (%(id)s::uuid, NULL::uuid, %(most)s::bigint), (%(id_person)s, %(person)s, %(most_person)s))
    AS t(id, person, most)
WHERE (t.id = %(id)s OR t.person IS NOT NULL) AND (t.most IS NULL OR %(amount)s <= t.most)
ON CONFLICT (workspace_id, user_id, kind) DO UPDATE SET
    used = CASE WHEN q.began_at < now() - %(period)s THEN 0 ELSE q.used END + %(amount)s,
    began_at = CASE WHEN q.began_at < now() - %(period)s THEN now() ELSE q.began_at END
WHERE CASE WHEN q.began_at < now() - %(period)s THEN 0 ELSE q.used END + %(amount)s
    <= coalesce(q."limit", CASE WHEN q.user_id IS NULL THEN %(most)s ELSE %(most_person)s END, 9223372036854775807)
RETURNING user_id
"""
FOR_EVER = timedelta(days=365_000)


def take_statement(kind: str, *, workspace_id: UUID, user_id: UUID | None, amount: int) -> tuple[str, dict[str, Any]]:
    """Return the statement that counts; it returns a row for each counter that had room.

    Where one has none, roll back: the other is counted already.
    """
    return TAKE, {
        "workspace": workspace_id,
        "person": user_id,
        "id": uuid4(),
        "id_person": uuid4(),
        "kind": str(kind),
        "amount": amount,
        "period": PERIODS.get(Quota.Kind(kind), FOR_EVER),
        "most": settings.QUOTAS["workspace"].get(str(kind)),
        "most_person": settings.QUOTAS["person"].get(str(kind)),
    }


@transaction.atomic
def take(kind: str, *, workspace_id: UUID, user_id: UUID | None, amount: int = 1) -> None:
    """Count for a workspace and a person, or for neither.

    Raises:
        QuotaExceeded: one of them has no room for it.
    """
    found = run(*take_statement(kind, workspace_id=workspace_id, user_id=user_id, amount=amount))
    check(kind, {row[0] for row in found}, workspace_id=workspace_id, user_id=user_id)


def check(kind: str, counted: set[UUID | None], *, workspace_id: UUID, user_id: UUID | None) -> None:
    """Raise QuotaExceeded unless both the workspace and the person were counted."""
    for whose in (None, user_id):
        if whose not in counted:
            row = Quota.objects.filter(workspace=workspace_id, user=whose, kind=kind).first()
            limit = limit_of(row) if row else default_limit(kind, person=whose is not None)
            raise QuotaExceeded(
                kind=str(Quota.Kind(kind).label),
                whose=_("this workspace") if whose is None else _("one person"),
                used=row.used if row else 0,
                limit=limit,
            )


def give_back(kind: str, *, workspace_id: UUID, user_id: UUID | None, amount: int = 1) -> None:
    """Count less, where something that has no period was erased."""
    rows = Quota.objects.filter(workspace=workspace_id, kind=kind)
    rows.filter(user=None).update(used=Greatest(F("used") - amount, 0))
    if user_id is not None:
        rows.filter(user=user_id).update(used=Greatest(F("used") - amount, 0))


@transaction.atomic
def set_limit_of(*, workspace: Workspace, user_id: UUID, kind: str, limit: int | None, actor: User) -> None:
    """Set a member's limit; None: the server's own.

    Raises:
        NotFound, NotAllowed: by the actor's role, or the person is not in the workspace.
    """
    require("manage_people", actor=actor, workspace=workspace)
    member = Membership.objects.filter(workspace=workspace, user=user_id).select_related("user").first()
    if member is None:
        raise NotFound
    quota, _made = Quota.objects.update_or_create(
        workspace=workspace, user_id=user_id, kind=kind, defaults={"limit": limit}
    )
    place, name = workspace.pk, member.user.email
    audit.record("quota.set", who=actor, workspace_id=place, target=quota, name=name, quota=kind, limit=limit)


def limit_of(quota: Quota) -> int | None:
    """Return the limit that counts: the row's own, else the server's; None: none."""
    return quota.limit if quota.limit is not None else default_limit(quota.kind, person=quota.user_id is not None)


def default_limit(kind: str, *, person: bool) -> int | None:
    """Return the server's own limit, None for none."""
    found: int | None = settings.QUOTAS["person" if person else "workspace"].get(str(kind))
    return found
