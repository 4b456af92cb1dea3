"""Operators' notices: written, ended, and which of them a page shows."""

from collections.abc import Iterable
from uuid import UUID

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from apps.common.errors import NotAllowed
from apps.workspaces import audit
from apps.workspaces.models import Notice, User

KNOWN = "workspaces.notices"
KNOWN_FOR_S = 30  # how long another process may not know of a new one


@transaction.atomic
def save_notice(*, notice: Notice, actor: User) -> None:
    """Store a notice, new or changed; every page shows it within half a minute of its time.

    Raises:
        NotAllowed: the actor is no operator.
    """
    _require_operator(actor)
    made = notice._state.adding
    notice.created_by = notice.created_by or actor
    notice.save()
    _record("notice.made" if made else "notice.changed", notice, actor)
    transaction.on_commit(forget)


@transaction.atomic
def delete_notice(*, notice: Notice, actor: User) -> None:
    """Take a notice away. Raises NotAllowed."""
    _require_operator(actor)
    _record("notice.deleted", notice, actor)
    notice.delete()
    transaction.on_commit(forget)


def notices_for(workspace_id: UUID | None, *, dismissed: Iterable[str] = ()) -> list[Notice]:
    """Return what a page shows now: what is for all, and for its workspace; the newest first."""
    known: list[Notice] | None = cache.get(KNOWN)
    if known is None:
        known = list(Notice.objects.to_come().order_by("-begins_at"))
        cache.set(KNOWN, known, KNOWN_FOR_S)
    now, closed = timezone.now(), set(dismissed)
    return [
        notice
        for notice in known
        if notice.begins_at <= now < notice.ends_at
        and notice.workspace_id in (None, workspace_id)
        and not (notice.dismissable and str(notice.pk) in closed)
    ]


def forget() -> None:
    """Look again at the next page, in this process at least."""
    cache.delete(KNOWN)


def _require_operator(actor: User) -> None:
    if not actor.is_staff or not actor.is_active:
        raise NotAllowed


def _record(action: str, notice: Notice, actor: User) -> None:
    place = notice.workspace_id
    audit.record(action, who=actor, workspace_id=place, target=notice, right="operator")
