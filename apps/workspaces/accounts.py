"""Our rules for django-allauth: who may sign up, and what everybody who does is given."""

import base64
from collections.abc import Iterator
from functools import partial
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from apps.common.errors import KnowSphereError
from apps.common.fields import Secret
from apps.common.rotation import Held
from apps.workspaces import services
from apps.workspaces.services.invitations import usable

TOTP_SECRET = b"mfa.secret"  # what the ciphertext is bound to


_ask_again = reauthentication_required(lambda request: None)


def ask_again(request: HttpRequest) -> None:
    """Let somebody who is signed in say once more who they are, unless they did so within five minutes.

    What cannot be undone takes more than an open browser. The request is kept, and goes on by itself afterwards.
    People who come through the operator's identity provider alone have nothing here to be asked for.

    Raises:
        ReauthenticationRequired: allauth's middleware leads to the page that asks.
    """
    if get_adapter().get_reauthentication_methods(request.user):
        _ask_again(request)


class AccountAdapter(DefaultAccountAdapter):
    """Our sign-up policy, and a first workspace for everybody who comes uninvited."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Follow SIGNUP; an open invitation lets its holder in unless nobody may."""
        return settings.SIGNUP == "open" or (settings.SIGNUP == "invited" and invited(request))

    def save_user(self, request: HttpRequest, user: Any, form: Any, commit: bool = True) -> Any:
        """Save the person and give them a workspace of their own, unless they were invited to one."""
        user = super().save_user(request, user, form, commit=commit)
        if commit:
            begin(request, user)
        return user


class SingleSignOnAdapter(DefaultSocialAccountAdapter):
    """The same rules for people who come through the operator's identity provider."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Follow SIGNUP, except that the provider decides whom it knows where sign-up is by invitation."""
        return settings.SIGNUP != "closed"

    def authenticate_by_email(self, sociallogin: Any) -> tuple[Any, str] | None:
        """Find the account of an address that the provider vouches for.

        Whoever claimed the address here first, and never proved that it is theirs, keeps no way in: allauth ends
        their password, and this their keys, passkeys and codes.
        """
        found: tuple[Any, str] | None = super().authenticate_by_email(sociallogin)
        if found is not None:
            user, address = found
            if not EmailAddress.objects.filter(user=user, email__iexact=address, verified=True).exists():
                services.end_ways_in(user=user)
        return found

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        """Save the person and give them a workspace of their own, unless they were invited to one."""
        user = super().save_user(request, sociallogin, form)
        begin(request, user)
        return user


class SecondStepAdapter(DefaultMFAAdapter):
    """Secrets of second steps lie encrypted under MASTER_KEY."""

    def encrypt(self, text: str) -> str:
        """Encrypt a secret for its row."""
        return base64.b64encode(Secret(text).seal(TOTP_SECRET)).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return the secret of a row."""
        return Secret(token=base64.b64decode(encrypted_text), associated=TOTP_SECRET).reveal()


def second_steps() -> Iterator[Held]:
    """Yield the secrets of apps that give codes, and of recovery codes, for the rotation of MASTER_KEY."""
    for pk in Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN).values_list("pk", flat=True):
        yield Held(f"second step {pk}", partial(_renew_second_step, pk))


@transaction.atomic
def _renew_second_step(pk: int) -> bool:
    row = Authenticator.objects.select_for_update().filter(pk=pk).first()
    sealed = next((name for name in ("secret", "seed") if row and name in row.data), None)
    if row is None or sealed is None:
        return False
    secret = Secret(token=base64.b64decode(row.data[sealed]), associated=TOTP_SECRET)
    if secret.is_current:
        return False
    row.data = {**row.data, sealed: base64.b64encode(secret.renewed().seal(TOTP_SECRET)).decode()}
    row.save(update_fields=["data"])
    return True


def invited(request: HttpRequest) -> bool:
    """Whether this browser opened an invitation that still lets somebody in."""
    token = request.session.get("invitation", "")
    try:
        return bool(token) and usable(token) is not None
    except KnowSphereError:
        return False


def begin(request: HttpRequest, user: Any) -> None:
    """Give a new person a workspace of their own, unless they were invited to one or only come to be."""
    if settings.SIGNUP == "open" and not invited(request):
        services.create_workspace(name=user.shown_name, owner=user)
