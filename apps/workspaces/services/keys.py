"""API keys: made, told from others, revoked."""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput
from apps.common.text import display_name, legible
from apps.workspaces import audit
from apps.workspaces.errors import KeyRefused
from apps.workspaces.models import ApiKey, User, Workspace
from apps.workspaces.permissions import require
from apps.workspaces.principals import SCOPES

PREFIX = "ks_"
LENGTH = len(PREFIX) + 43
SHOWN = 9  # characters that are kept to tell keys apart: 6 of 43, of no use to a guesser
TOUCHED_EVERY = timedelta(minutes=1)


@transaction.atomic
def create_api_key(
    *, workspace: Workspace, name: str, scopes: Collection[str], actor: User, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """Make a key in the actor's name; return its row, and the key itself, which nobody can look up again.

    A key that is made through a key ends with it at the latest, also where that one is revoked.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace.
        InvalidInput: no name, no or unknown scopes, scopes that the actor's own key lacks, or an end in the past.
    """
    require("create_api_key", actor=actor, workspace=workspace)
    if not legible(name).strip():
        raise InvalidInput(field="name", reason=_("it is empty"))
    wanted = sorted(set(scopes))
    if not wanted or any(scope not in SCOPES or not actor.principal.may(scope) for scope in wanted):
        raise InvalidInput(field="scopes", reason=_("choose at least one of those offered"))
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput(field="expires_at", reason=_("it lies in the past"))
    own = _held(actor.principal.key_id) if actor.principal.key_id else None
    if own and own.expires_at:
        expires_at = min(expires_at or own.expires_at, own.expires_at)
    secret = PREFIX + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        workspace=workspace,
        user=actor,
        name=display_name(name, limit=100),
        start=secret[:SHOWN],
        digest=digest_of(secret),
        scopes=wanted,
        expires_at=expires_at,
        made_by=own,
    )
    audit.record("key.made", who=actor, workspace_id=workspace.pk, target=key, name=key.name, scopes=wanted)
    return key, secret


def _held(key_id: UUID) -> ApiKey:
    """Return a key that still holds, locked, so that whoever revokes it sees what it makes. Raises KeyRefused."""
    key = ApiKey.objects.living().select_for_update().filter(pk=key_id).first()
    if key is None:
        raise KeyRefused
    return key


@transaction.atomic
def revoke_api_key(*, key: ApiKey, actor: User) -> None:
    """End a key that came through ``editable_by``, and all keys that it made, and so on.

    What they began reads nothing more from now on.
    """
    ended = [key]
    while ended:
        for one in ended:
            if ApiKey.objects.filter(pk=one.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
                audit.record("key.revoked", who=actor, workspace_id=one.workspace_id, target=one, name=one.name)
        ended = list(ApiKey.objects.filter(made_by__in=ended, revoked_at__isnull=True))


def principal_of_key(secret: str) -> User:
    """Return the person that a key belongs to, acting as that key: the doors then ask the key.

    Whoever is not in the key's workspace any more is let in and finds nothing. Records the use, at
    most once a minute.

    Raises:
        KeyRefused: there is no such living key, or its person may not sign in.
    """
    if not secret.startswith(PREFIX) or len(secret) != LENGTH:
        raise KeyRefused
    living = ApiKey.objects.living().filter(digest=digest_of(secret), user__is_active=True)
    key = living.select_related("user").first()
    if key is None:
        raise KeyRefused
    now = timezone.now()
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - TOUCHED_EVERY)
    ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    key.user.acts_as = key.principal
    return key.user


def digest_of(secret: str) -> str:
    """Return what is stored of a key: 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()
