"""Who calls, as far as the frame needs to know: a name for counting, and what a key is allowed."""

from typing import Protocol, cast
from uuid import UUID

from rest_framework.request import Request

from apps.rest.errors import ScopeMissing


class Credential(Protocol):
    """Whoever a key stands for: ``request.auth`` where a request came with one."""

    @property
    def key_id(self) -> UUID | None:
        """The key's id."""

    @property
    def workspace_id(self) -> UUID | None:
        """The only workspace that it opens."""

    def may(self, scope: str) -> bool:
        """Return whether the scopes include this one."""


def credential_of(request: Request) -> Credential | None:
    """Return the key that came with a request, None for a session."""
    return cast("Credential | None", request.auth)


def caller_of(request: Request) -> str:
    """Return a name for who sent a request."""
    credential = credential_of(request)
    return f"key:{credential.key_id}" if credential else f"user:{request.user.pk}"


def require_scope(request: Request, scope: str) -> None:
    """Let a session pass, and a key that is allowed this. Raises ScopeMissing."""
    credential = credential_of(request)
    if scope and credential is not None and not credential.may(scope):
        raise ScopeMissing(scope=scope)
