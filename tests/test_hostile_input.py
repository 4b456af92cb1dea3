"""Odd values in every place of every request: none may give a 500, whoever sends them."""

import pytest
from django.db import transaction
from django.urls import reverse

from tests.access.conftest import world  # noqa: F401 (fixture)
from tests.access.tables import EXPECTED

VALUES = ["\x00", "\ud800", "9" * 5000, "-1", "1e400", "٣", "%", "_", "\\", "'\"<svg onload=1>", "a" * 20_000, "\u202e"]
PARAMETERS = ("before", "at", "page", "q", "state", "row", "kb", "chunk", "start", "end", "first", "next", "language")
FIELDS = ("name", "description", "text", "kb", "client_id", "email", "level", "language", "next", "login", "password")


def quoted(value):
    return value.encode("utf-8", "surrogatepass").hex(" ").replace(" ", "%").join(["%", ""])


@pytest.fixture
def arguments(world):  # noqa: F811
    return world.arguments


@pytest.fixture
def no_raise(client):
    client.raise_request_exception = False
    return client


def broken_by(ask):
    """Return what each odd value breaks; whatever a request changed is undone before the next."""
    found = []
    for place, value in enumerate(VALUES):
        with transaction.atomic():
            found += [f"value {place}: {answer.status_code}" for answer in ask(value) if answer.status_code >= 500]
            transaction.set_rollback(True)
    return found


@pytest.mark.parametrize("route", [route for method, route in EXPECTED if method == "get"])
def test_no_query_breaks_a_page(no_raise, arguments, ann, route):
    no_raise.force_login(ann)
    path = reverse(route, kwargs=arguments(route))

    def ask(value):
        query = "&".join(f"{name}={quoted(value)}" for name in PARAMETERS)
        headers = {"HX-Request": "true"} if VALUES.index(value) % 3 == 0 else {}
        yield no_raise.get(f"{path}?{query}", headers=headers)

    assert broken_by(ask) == []


@pytest.mark.parametrize("route", [route for method, route in EXPECTED if method == "post"])
def test_no_field_breaks_a_form(no_raise, arguments, ann, route):
    no_raise.force_login(ann)
    path = reverse(route, kwargs=arguments(route))

    def ask(value):
        body = "&".join(f"{name}={quoted(value)}" for name in FIELDS)
        yield no_raise.post(path, body, content_type="application/x-www-form-urlencoded")

    assert broken_by(ask) == []


@pytest.mark.parametrize("route", ["account_login", "account_signup", "account_reset_password"])
def test_no_field_breaks_signing_in(no_raise, db, route):
    fields = ("login", "email", "password", "password1", "next", "remember")
    path = reverse(route)

    def ask(value):
        body = "&".join(f"{name}={quoted(value)}" for name in fields)
        yield no_raise.post(path, body, content_type="application/x-www-form-urlencoded")
        yield no_raise.get(f"{path}?{body}")

    assert broken_by(ask) == []


@pytest.mark.parametrize("value", [r'"\000\000\000\000\000\000\000\000"', r'"\377\377"', "é" * 9, "x" * 9000, '"'])
@pytest.mark.parametrize("name", ["ks_session", "ks_csrf", "ks_language", "ks_theme", "messages"])
def test_no_cookie_breaks_a_page(no_raise, acme, name, value):
    for path in ("/accounts/login/", f"/{acme.slug}/"):
        answer = no_raise.get(path, headers={"cookie": f"{name}={value}"})
        assert answer.status_code < 500
    assert no_raise.post("/accounts/login/", headers={"cookie": f"{name}={value}"}).status_code < 500


@pytest.mark.parametrize("n", ["0", "1", "99999999999", "9" * 30, "9" * 5000])
def test_no_number_breaks_a_source(no_raise, arguments, ann, n):
    no_raise.force_login(ann)
    path = reverse("conversations:show-source", kwargs={**arguments("conversations:show-source"), "n": 7})
    assert no_raise.get(path.replace("/7/", f"/{n}/")).status_code in (200, 404)


def test_no_header_breaks_a_page(no_raise, arguments, ann):
    no_raise.force_login(ann)
    path = reverse("knowledge:show-knowledge-base", kwargs=arguments("knowledge:show-knowledge-base"))
    for headers in (
        {"X-Request-ID": "a\x00b" * 9}, {"Accept-Language": "\x00" * 900}, {"HX-Current-URL": "http://["},
        {"HX-Request": "true", "HX-Current-URL-URI-AutoEncoded": "true", "HX-Current-URL": "%00%ff"},
        {"Accept": "\x00"}, {"Referer": "http://["}, {"Range": "bytes=0-"}, {"HX-Target": "\x00"},
    ):  # fmt: skip
        assert no_raise.get(path, headers=headers).status_code < 500
