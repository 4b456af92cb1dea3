"""Sign-up rules for django-allauth."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest

from apps.workspaces import services


class AccountAdapter(DefaultAccountAdapter):
    """Our sign-up policy, and a first workspace for everybody who signs up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Follow SIGNUP; invitations open a door of their own."""
        return bool(settings.SIGNUP == "open")

    def save_user(self, request: HttpRequest, user: Any, form: Any, commit: bool = True) -> Any:
        """Save the person and give them a workspace of their own."""
        user = super().save_user(request, user, form, commit=commit)
        if commit:
            services.create_workspace(name=user.shown_name, owner=user)
        return user
