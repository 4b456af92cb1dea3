"""How a program signs in: ``Authorization: Bearer ks_…``; our own pages by their session."""

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from apps.workspaces.models import User
from apps.workspaces.principals import Principal
from apps.workspaces.services import principal_of_key


class KeyAuthentication(BaseAuthentication):
    """An API key in the header, never in the address."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        """Return the person acting as the key, None where no key came along. Raises KeyRefused."""
        secret = bearer(request.headers.get("Authorization", ""))
        if secret is None:
            return None
        user = principal_of_key(secret)
        return user, user.principal

    def authenticate_header(self, request: Request) -> str:
        """Say how to sign in."""
        return 'Bearer realm="KnowSphere"'


def bearer(header: str) -> str | None:
    """Return the key that a header carries, None where it is of another kind."""
    kind, _space, secret = header.strip().partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None
