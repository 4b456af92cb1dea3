"""A second step: set up with an app's secret, asked for at sign-in, its secret encrypted."""

import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.urls import reverse

pytestmark = pytest.mark.django_db


def code_of(secret):
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def test_a_second_step_is_asked_for_once_it_is_set_up(client, ann, acme):
    form = {"login": ann.email, "password": "correct horse battery"}
    client.post(reverse("account_login"), form)
    asked = client.get(reverse("mfa_activate_totp"))
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    client.post(reverse("account_reauthenticate"), {"password": "correct horse battery"})
    page = client.get(reverse("mfa_activate_totp"))
    assert page.status_code == 200
    secret = client.session["mfa.totp.secret"]
    assert secret in page.content.decode()
    done = client.post(reverse("mfa_activate_totp"), {"code": code_of(secret)})
    assert done.status_code == 302
    stored = Authenticator.objects.get(user=ann, type="totp")
    assert secret not in str(stored.data)
    for route in ("mfa_index", "mfa_view_recovery_codes", "mfa_list_webauthn", "mfa_add_webauthn"):
        assert client.get(reverse(route)).status_code == 200
    client.post(reverse("account_logout"))

    asked = client.post(reverse("account_login"), form)
    assert asked["Location"].startswith(reverse("mfa_authenticate"))
    assert client.get(reverse("workspaces:list-members", args=["acme"])).status_code == 302
    assert client.post(reverse("mfa_authenticate"), {"code": "000000"}).status_code == 200
    recovery = Authenticator.objects.get(user=ann, type="recovery_codes").wrap().get_unused_codes()[0]
    client.post(reverse("mfa_authenticate"), {"code": recovery})
    assert client.get(reverse("workspaces:list-members", args=["acme"])).status_code == 200


def test_single_sign_on_leads_to_the_operator_s_provider_alone(client, db):
    assert client.get("/accounts/sso/other/login/").status_code == 404
    assert client.get("/accounts/sso/oidc/login/").status_code == 404  # none is configured
