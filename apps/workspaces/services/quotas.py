"""Quotas, counted by conditional updates: what does not fit is not counted, however many race for it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest
from django.utils.translation import gettext as _

from apps.common.database import run
from apps.common.errors import NotFound
from apps.workspaces import audit
from apps.workspaces.errors import QuotaExceeded
from apps.workspaces.models import Membership, Quota, User, Workspace
from apps.workspaces.permissions import require

PERIODS = {"uploads": "1 hour", "turns": "1 day"}
FOR_EVER = "1000 years"
BEYOND = 2**62  # what no use reaches: no limit

# One statement counts all kinds, for the workspace and the person; a row that has no room is not touched, and not
# returned. ``most`` is the limit where the row has none of its own. ``place``: a query of one row or none, the
# workspace's id.
TAKE = """
INSERT INTO workspaces_quota AS q (id, workspace_id, user_id, kind, used, began_at)
SELECT t.id, place.id, t.person, t.kind, t.amount, now()
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::bigint[], %s::bigint[])
    AS t(id, person, kind, amount, most), ({place}) AS place(id)
WHERE t.amount <= t.most OR EXISTS (
    SELECT 1 FROM workspaces_quota o
    WHERE o.workspace_id = place.id AND o.user_id IS NOT DISTINCT FROM t.person AND o.kind = t.kind)
ORDER BY t.kind, t.person
ON CONFLICT (workspace_id, user_id, kind) DO UPDATE SET
    used = excluded.used + CASE WHEN q.began_at < now() - (%s::jsonb ->> q.kind)::interval THEN 0 ELSE q.used END,
    began_at = CASE WHEN q.began_at < now() - (%s::jsonb ->> q.kind)::interval THEN now() ELSE q.began_at END
WHERE excluded.used + CASE WHEN q.began_at < now() - (%s::jsonb ->> q.kind)::interval THEN 0 ELSE q.used END
    <= coalesce(q."limit", CASE WHEN q.user_id IS NULL THEN (%s::jsonb ->> q.kind)::bigint
    ELSE (%s::jsonb ->> q.kind)::bigint END)
RETURNING q.kind, q.user_id
"""


def take_statement(
    amounts: Mapping[str, int], *, user_id: UUID | None, place: str, parameters: Sequence[Any] = ()
) -> tuple[str, list[Any]]:
    """Return the statement that counts; it returns (kind, user) for each counter that had room.

    Where one has none, roll back or give back: the others are counted already. ``place`` is SQL that
    finds the workspace's id, with its parameters.
    """
    counters = [(kind, whose) for kind in amounts for whose in ((None, user_id) if user_id else (None,))]
    periods = orjson.dumps({kind: PERIODS.get(kind, FOR_EVER) for kind in amounts}).decode()
    return TAKE.format(place=place), [
        [uuid4() for _ in counters],
        [whose for _kind, whose in counters],
        [kind for kind, _whose in counters],
        [amounts[kind] for kind, _whose in counters],
        [_most(kind, person=whose is not None) for kind, whose in counters],
        *parameters,
        *(periods, periods, periods),
        *(orjson.dumps({kind: _most(kind, person=person) for kind in amounts}).decode() for person in (False, True)),
    ]


@transaction.atomic
def take(*, workspace_id: UUID, user_id: UUID | None, **amounts: int) -> None:
    """Count for a workspace and a person, of every kind named, or nothing at all.

    Raises:
        QuotaExceeded: one of the counters has no room.
    """
    take_with_all(workspace_id=workspace_id, user_id=user_id, **amounts)


def take_with_all(*, workspace_id: UUID, user_id: UUID | None, **amounts: int) -> None:
    """Do the same in the caller's transaction, which must not outlive what this raises: it sets no savepoint."""
    statement = take_statement(amounts, user_id=user_id, place="SELECT %s::uuid", parameters=[workspace_id])
    found = run(*statement)
    check(amounts, set(found), workspace_id=workspace_id, user_id=user_id)


def check(kinds: Iterable[str], counted: set[tuple[Any, ...]], *, workspace_id: UUID, user_id: UUID | None) -> None:
    """Raise QuotaExceeded unless both the workspace and the person were counted, for each kind."""
    for kind in kinds:
        for whose in (None, user_id):
            if (kind, whose) in counted:
                continue
            row = Quota.objects.filter(workspace=workspace_id, user=whose, kind=kind).first()
            limit = limit_of(row) if row else default_limit(kind, person=whose is not None)
            raise QuotaExceeded(
                kind=str(Quota.Kind(kind).label),
                whose=_("this workspace") if whose is None else _("one person"),
                used=row.used if row else 0,
                limit=limit,
            )


def give_back(*, workspace_id: UUID, user_id: UUID | None, **amounts: int) -> None:
    """Count less, for a workspace and a person, where something that has no period was erased."""
    give_back_to({None, user_id}, workspace_id=workspace_id, **amounts)


def give_back_to(people: Collection[UUID | None], *, workspace_id: UUID, **amounts: int) -> None:
    """Count less for these people alone; None stands for the workspace."""
    whose = Q(user__in=[person for person in people if person])
    whose = whose | Q(user=None) if None in people else whose
    for kind, amount in amounts.items():
        rows = Quota.objects.filter(whose, workspace=workspace_id, kind=kind)
        rows.update(used=Greatest(F("used") - amount, 0))


@transaction.atomic
def set_limit_of(*, workspace: Workspace, user_id: UUID, kind: str, limit: int | None, actor: User) -> Quota:
    """Set a member's limit, and return its counter; None: the server's own.

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
    return quota


def limit_of(quota: Quota) -> int | None:
    """Return the limit that counts: the row's own, else the server's; None: none."""
    return quota.limit if quota.limit is not None else default_limit(quota.kind, person=quota.user_id is not None)


def _most(kind: str, *, person: bool) -> int:
    found = default_limit(kind, person=person)
    return BEYOND if found is None else found


def default_limit(kind: str, *, person: bool) -> int | None:
    """Return the server's own limit, None for none."""
    found: int | None = settings.QUOTAS["person" if person else "workspace"].get(str(kind))
    return found
