"""Who calls, as far as the frame needs to know: a name for counting, and what a key is allowed."""

from typing import Any, Protocol, cast
from uuid import UUID

from rest_framework.request import Request

from apps.rest.errors import ScopeMissing


class Principal(Protocol):
    """Who asks, as the doors take it."""

    def may(self, scope: str) -> bool:
        """Return whether the scopes include this one."""


class Credential(Protocol):
    """A key, in ``request.auth`` where a request came with one."""

    pk: Any
    workspace_id: UUID

    @property
    def principal(self) -> Principal:
        """Who asks with this key."""


def credential_of(request: Request) -> Credential | None:
    """Return the key that came with a request, None for a session."""
    return cast("Credential | None", request.auth)


def caller_of(request: Request) -> str:
    """Return a name for who sent a request."""
    credential = credential_of(request)
    return f"key:{credential.pk}" if credential else f"user:{request.user.pk}"


def require_scope(request: Request, scope: str) -> None:
    """Let a session pass, and a key that is allowed this. Raises ScopeMissing."""
    credential = credential_of(request)
    if scope and credential is not None and not credential.principal.may(scope):
        raise ScopeMissing(scope=scope)
