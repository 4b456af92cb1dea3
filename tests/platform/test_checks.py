"""System checks on the database, against real databases."""

import os

import psycopg
import pytest
from django.core.checks import run_checks
from django.db import connections

from apps.common import checks
from apps.common.database import conninfo

pytestmark = pytest.mark.django_db


@pytest.fixture
def database(request):
    """A database made with the clause that the test gives; gone afterwards."""
    name = f"check_locale_{os.getpid()}"  # the suite runs in several processes on one server
    with psycopg.connect(conninfo(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 {request.param}")
        with psycopg.connect(conninfo(), dbname=name, autocommit=True) as inside:
            inside.execute("CREATE EXTENSION pg_trgm")
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def found(monkeypatch, **settings):
    connection = connections.create_connection("default")
    connection.settings_dict = {**connections["default"].settings_dict, **settings}
    monkeypatch.setattr(checks, "connections", {"default": connection})
    try:
        return [message.id for message in checks.check_server(databases=["default"])]
    finally:
        connection.close()


def test_our_own_server_passes(settings):
    assert [m for m in run_checks(databases=["default"]) if m.id.startswith("knowsphere.")] == []


@pytest.mark.xdist_group("check-locale")
@pytest.mark.parametrize("database", ["LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LC_CTYPE 'C'"], indirect=True)
def test_a_locale_that_hides_chinese_is_named_even_under_a_utf8_provider(database, monkeypatch):
    assert found(monkeypatch, NAME=database) == ["knowsphere.E004"]


@pytest.mark.xdist_group("check-locale")
@pytest.mark.parametrize("database", ["LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'"], indirect=True)
def test_a_locale_that_shows_chinese_passes(database, monkeypatch):
    assert found(monkeypatch, NAME=database) == []


def test_an_old_server_is_refused(monkeypatch):
    monkeypatch.setattr(checks, "OLDEST_SERVER", 9_990_000)
    assert found(monkeypatch) == ["knowsphere.E002"]


def test_a_missing_extension_is_named(monkeypatch):
    monkeypatch.setattr(checks, "EXTENSIONS", {"vector", "no_such_extension"})
    assert found(monkeypatch) == ["knowsphere.E003"]


def test_a_database_that_does_not_answer_is_one_message(monkeypatch):
    assert found(monkeypatch, HOST="/nonexistent") == ["knowsphere.E001"]


def test_without_a_database_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(checks, "connections", {})
    assert checks.check_server(databases=None) == []
