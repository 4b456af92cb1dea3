"""A second step: set up with an app's secret, asked for at sign-in, its secret encrypted."""

import base64
import os
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


def test_a_new_master_key_reaches_second_steps(ann, settings, capsys):
    from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
    from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
    from django.core.management import call_command

    secret = generate_totp_secret()
    TOTP.activate(ann, secret)
    codes = RecoveryCodes.activate(ann).get_unused_codes()
    old, fresh = settings.MASTER_KEYS[0], base64.b64encode(os.urandom(32)).decode()
    settings.MASTER_KEYS = [fresh, old]
    call_command("rotate_master_key")
    call_command("rotate_master_key")
    assert capsys.readouterr().out.splitlines() == [
        "2 encrypted anew, 0 were already.",
        "0 encrypted anew, 2 were already.",
    ]
    settings.MASTER_KEYS = [fresh]
    assert Authenticator.objects.get(user=ann, type="totp").wrap().validate_code(code_of(secret))
    assert Authenticator.objects.get(user=ann, type="recovery_codes").wrap().get_unused_codes() == codes


def test_single_sign_on_leads_to_the_operator_s_provider_alone(client, db):
    assert client.get("/accounts/sso/other/login/").status_code == 404
    assert client.get("/accounts/sso/oidc/login/").status_code == 404  # none is configured
