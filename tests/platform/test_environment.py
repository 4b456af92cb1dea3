"""Variables of the environment: what is read, and that what cannot be right refuses to start."""

import base64

import pytest
from django.core.exceptions import ImproperlyConfigured

from knowsphere import environment
from tests.platform.conftest import NOBODY, can_become_nobody

KEY = base64.b64encode(bytes(32)).decode()
PRODUCTION = {
    "ENVIRONMENT": "production",
    "DATABASE_URL": "postgresql://ks:secret@db.internal:5432/ks",
    "SECRET_KEY": "of-this-test-alone-" * 4,
    "MASTER_KEY": KEY,
    "ALLOWED_HOSTS": "ks.example.com",
    "SITE_URL": "https://ks.example.com",
}


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (lambda: environment.text("THING", "else"), "  a b ", "a b"),
        (lambda: environment.text("THING", "else"), "", "else"),
        (lambda: environment.flag("THING"), "Yes", True),
        (lambda: environment.flag("THING"), "", False),
        (lambda: environment.flag("THING"), "off", False),
        (lambda: environment.whole("THING", 7), "", 7),
        (lambda: environment.whole("THING", 7), "12", 12),
        (lambda: environment.words("THING"), " a, ,b,", ["a", "b"]),
        (lambda: environment.url("THING"), "https://h:8080/v1/", "https://h:8080/v1"),
        (lambda: environment.networks("THING", "127.0.0.1"), "", ["127.0.0.1"]),
        (lambda: environment.networks("THING", "127.0.0.1"), "10.0.0.5, fd00::/8", ["10.0.0.5", "fd00::/8"]),
        (lambda: environment.url("THING"), "", ""),
        (lambda: environment.database("THING"), "postgres://u:p%40@h/d", "postgres://u:p%40@h/d"),
    ],
)
def test_reads(monkeypatch, read, value, expected):
    monkeypatch.setenv("THING", value)
    assert read() == expected


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda: environment.choice("THING", ("a", "b"), "a"), "c"),
        (lambda: environment.flag("THING"), "perhaps"),
        (lambda: environment.whole("THING", 7), "seven"),
        (lambda: environment.whole("THING", 7, most=10), "11"),
        (lambda: environment.url("THING"), "example.com"),
        (lambda: environment.url("THING"), "ftp://example.com"),
        (lambda: environment.url("THING"), "http://"),
        (lambda: environment.url("THING"), "http://[::1"),
        (lambda: environment.url("THING"), "http://h:notaport"),
        (lambda: environment.networks("THING", "127.0.0.1"), "*"),
        (lambda: environment.networks("THING", "127.0.0.1"), "10.0.0.5, 0.0.0.0/0"),
        (lambda: environment.networks("THING", "127.0.0.1"), "10.0.0.5/8"),
        (lambda: environment.database("THING"), "mysql://u@h/d"),
        (lambda: environment.database("THING"), "postgresql://u@h"),
        (lambda: environment.folder("THING", environment.CHECKOUT), "s3://bucket/files"),
    ],
)
def test_refuses_and_names_the_variable(monkeypatch, read, value):
    monkeypatch.setenv("THING", value)
    with pytest.raises(ImproperlyConfigured, match="THING"):
        read()


def test_a_refused_database_address_is_not_shown(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "mysql://u:hunter2@h/d")
    with pytest.raises(ImproperlyConfigured) as refused:
        environment.database("DATABASE_URL")
    assert "hunter2" not in str(refused.value)


def test_a_secret_can_come_from_a_file(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("THING_FILE", str(tmp_path / "secret"))
    assert environment.text("THING") == "from a file"
    monkeypatch.setenv("THING", "from the environment")
    with pytest.raises(ImproperlyConfigured, match="both set"):
        environment.text("THING")


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00"], ids=["missing", "empty", "not text"])
def test_a_file_that_cannot_be_used_is_refused(monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    monkeypatch.setenv("THING_FILE", str(tmp_path / "secret"))
    with pytest.raises(ImproperlyConfigured, match="THING_FILE"):
        environment.text("THING")


def test_development_keys_are_made_once_and_are_private(monkeypatch, tmp_path):
    monkeypatch.setenv("KNOWSPHERE_HOME", str(tmp_path))
    monkeypatch.delenv("SECRET_KEY", raising=False)
    first = environment.secret_key(required=False)
    assert environment.secret_key(required=False) == first
    assert (tmp_path / "secrets" / "secret_key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert len(list((tmp_path / "secrets").iterdir())) == 1


@pytest.mark.parametrize("name", ["SECRET_KEY", "MASTER_KEY", "ALLOWED_HOSTS", "SITE_URL"])
def test_production_refuses_to_start_without(home, name):
    variables = {**PRODUCTION, name: ""}
    done = home.run("manage.py", "check", **variables)
    assert done.returncode == 1
    assert name in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home.path / "secrets").exists(), "no key is made up in production"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MASTER_KEY", base64.b64encode(bytes(31)).decode()),
        ("MASTER_KEY", "not base64!"),
        ("MASTER_KEY_FALLBACKS", "c2hvcnQ="),
        ("SECRET_KEY", "short"),
        ("ENVIRONMENT", "staging"),
        ("SIGNUP", "perhaps"),
        ("REDIS_URL", "localhost:6379"),
        ("EMAIL_URL", "carrier-pigeon://coop"),
        ("EMAIL_URL", "smtp://h:abc"),
        ("DEFAULT_LANGUAGE", "fr"),
        ("OPENAI_BASE_URL", "api.example.com"),
        ("STORAGE_URL", "ftp://files.example.com/folder"),
        ("STORAGE_URL", "s3://key:sec/ret@bucket"),
        ("STORAGE_URL", "s3://bucket?endpoint=files.example.com"),
        ("WORKERS", "0"),
        ("LOG_LEVEL", "LOUD"),
    ],
)
def test_a_wrong_value_stops_every_command_with_a_sentence(home, name, value):
    done = home.run("manage.py", "check", **{**PRODUCTION, name: value})
    assert done.returncode == 1
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_production_is_clean(home):
    done = home.run("manage.py", "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert done.returncode == 0, done.stderr


@can_become_nobody
def test_keys_of_somebody_else_are_refused_with_a_sentence(make_home):
    home = make_home()
    home.path.parent.chmod(0o755)
    (home.path / "secrets").mkdir()
    (home.path / "secrets").chmod(0o700)
    home.user = NOBODY
    done = home.run("manage.py", "check", DATABASE_URL=PRODUCTION["DATABASE_URL"])
    assert done.returncode == 1
    assert "KNOWSPHERE_HOME" in done.stderr
    assert "Traceback" not in done.stderr
