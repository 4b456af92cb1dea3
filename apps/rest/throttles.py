"""How often one key, one person and one workspace may ask, each a minute (docs/environment.md).

Counted in the cache: of this process, or of all where REDIS_URL is set.
"""

from types import SimpleNamespace
from typing import Any, cast

from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

from apps.rest.callers import credential_of
from apps.rest.errors import RateLimited


class _Throttle(SimpleRateThrottle):
    def __init__(self) -> None:
        self.THROTTLE_RATES = cast(
            "dict[str, str | None]", api_settings.DEFAULT_THROTTLE_RATES
        )  # as they are now, not as they were at import
        super().__init__()

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        counted = self.counted(request)
        return f"throttle:{self.scope}:{counted}" if counted else None

    def counted(self, request: Request) -> str | None:
        """Return whose requests are counted together, None for nobody's."""
        raise NotImplementedError


class KeyThrottle(_Throttle):
    """Requests of one key."""

    scope = "key"

    def counted(self, request: Request) -> str | None:
        credential = credential_of(request)
        return str(credential.key_id) if credential else None


class PersonThrottle(_Throttle):
    """Requests of one person, by all their keys and sessions."""

    scope = "person"

    def counted(self, request: Request) -> str | None:
        return str(request.user.pk) if request.user.pk else None


class WorkspaceThrottle(_Throttle):
    """Requests by all keys of a workspace."""

    scope = "workspace"

    def counted(self, request: Request) -> str | None:
        credential = credential_of(request)
        return str(credential.workspace_id) if credential else None


def count(user: Any, credential: Any) -> None:
    """Count a request that no view counts.

    Raises:
        RateLimited: it is one too many.
    """
    request = cast("Request", SimpleNamespace(user=user, auth=credential))
    for throttle in (KeyThrottle(), PersonThrottle(), WorkspaceThrottle()):
        if not throttle.allow_request(request, cast("Any", None)):
            raise RateLimited(retry_after=max(1, round(throttle.wait() or 1)))
