"""What every answer carries, and static files, in both environments."""

import json
import re

import pytest
from django.conf import settings

from tests.platform.test_environment import PRODUCTION

pytestmark = pytest.mark.xdist_group("web")

FETCH = """
import json, sys
from pathlib import Path
from knowsphere import settings
if sys.argv[1]:
    settings.STATIC_ROOT = Path(sys.argv[1])
import django
django.setup()
from django.core.management import call_command
from django.test import Client
if sys.argv[1] and not (Path(sys.argv[1]) / "staticfiles.json").exists():
    call_command("collectstatic", interactive=False, verbosity=0)
from django.contrib.staticfiles.storage import staticfiles_storage
answers = {}
for path in sys.argv[3:]:
    if path.startswith("static:"):
        path = staticfiles_storage.url(path.removeprefix("static:"))
    response = Client(headers=json.loads(sys.argv[2])).get(path)
    answers[path] = [response.status_code, dict(response.headers)]
print(json.dumps(answers))
"""


def fetch(home, *paths, headers=None, **variables):
    """Ask for pages in a process that was started with these variables; return them and what it printed."""
    done = home.run(
        "-c", FETCH, variables.pop("static_root", ""), json.dumps(headers or {}), *paths,
        DJANGO_SETTINGS_MODULE="knowsphere.settings", **variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout), done.stderr


def directives(header):
    return dict(part.strip().partition(" ")[::2] for part in header.split(";") if part.strip())


@pytest.mark.django_db
def test_every_page_is_guarded(client):
    response = client.get("/accounts/login/")
    policy = directives(response["Content-Security-Policy"])
    assert policy["default-src"] == "'none'"
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "*" not in response["Content-Security-Policy"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    assert re.fullmatch(r"[0-9a-f]{32}", response["X-Request-ID"])
    page = response.content.decode()
    assert not re.search(r"<[^>]+\sstyle=", page)
    assert not re.search(r"<[^>]+\son[a-z]+=", page)


@pytest.mark.django_db
def test_cookies_are_out_of_reach_of_scripts_and_other_sites(client, ann):
    client.post("/accounts/login/", {"login": ann.email, "password": "correct horse battery"})
    session = client.cookies[settings.SESSION_COOKIE_NAME]
    assert (session["httponly"], session["samesite"]) == (True, "Lax")


@pytest.fixture(scope="module")
def production(tmp_path_factory):
    """Variables of a production without a database; its static files are gathered once."""
    static_root = str(tmp_path_factory.mktemp("static"))
    return {**PRODUCTION, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "static_root": static_root}


def test_production_insists_on_https(home, production):
    over_http, _ = fetch(home, "/accounts/login/", headers={"host": "ks.example.com"}, **production)
    status, headers = over_http["/accounts/login/"]
    assert (status, headers["Location"]) == (301, "https://ks.example.com/accounts/login/")

    secure = {"host": "ks.example.com", "x-forwarded-proto": "https"}
    answers, _ = fetch(home, "/i18n/setlang/", headers=secure, **production)
    headers = answers["/i18n/setlang/"][1]
    assert headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"


def test_probes_come_by_address_and_over_plain_http(home, production):
    answers, _ = fetch(home, "/healthz", "/readyz", headers={"host": "10.0.0.7:8000"}, **production)
    assert answers["/healthz"][0] == 200
    assert answers["/readyz"][0] == 503, "this production's database is not there"


def test_a_foreign_host_is_refused(home, production):
    secure = {"host": "evil.example.org", "x-forwarded-proto": "https"}
    answers, _ = fetch(home, "/accounts/login/", headers=secure, **production)
    assert answers["/accounts/login/"][0] == 400


def test_static_files_are_served_locally_as_they_are(home):
    path = "/static/django_htmx/htmx-2.min.js"
    answers, said = fetch(home, path, headers={"host": "127.0.0.1"}, DATABASE_URL=PRODUCTION["DATABASE_URL"])
    assert "Warning" not in said
    status, headers = answers[path]
    assert status == 200
    assert "javascript" in headers["Content-Type"]


def test_static_files_of_production_have_hashed_names_and_are_kept_for_ever(home, production):
    secure = {"host": "ks.example.com", "x-forwarded-proto": "https", "accept-encoding": "gzip"}
    answers, said = fetch(home, "static:django_htmx/htmx-2.min.js", headers=secure, **production)
    [(url, (status, headers))] = answers.items()
    assert re.search(r"\.[0-9a-f]{12}\.js$", url)
    assert (status, headers["Content-Encoding"]) == (200, "gzip")
    assert "immutable" in headers["Cache-Control"]
    assert "Warning" not in said


def test_pages_of_production_name_the_hashed_files(home, production):
    """A page that named a file which is not gathered would fail here."""
    secure = {"host": "ks.example.com", "x-forwarded-proto": "https"}
    answers, said = fetch(home, "/accounts/signup/", "/nowhere/", headers=secure, **production)
    assert answers["/accounts/signup/"][0] == 200, said[-2000:]
    assert "Missing staticfiles" not in said
