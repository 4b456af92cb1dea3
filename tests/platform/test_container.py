"""Dockerfile and compose.yaml name only what exists. No engine is needed to see that."""

import json
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from knowsphere import entrypoint, environment

ROOT = environment.CHECKOUT
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
INSTRUCTIONS = [
    tuple(line.split(maxsplit=1))
    for line in re.sub(r"\s*\\\n\s*", " ", re.sub(r"(?m)^#.*\n", "", (ROOT / "Dockerfile").read_text())).splitlines()
    if line.strip()
]
IGNORED = (ROOT / ".dockerignore").read_text().split()


def arguments(name):
    return [rest for instruction, rest in INSTRUCTIONS if instruction == name]


def last_stage():
    start = max(n for n, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM")
    return INSTRUCTIONS[start:]


def test_every_file_that_the_image_copies_exists_and_reaches_the_builder():
    sources = [source for rest in arguments("COPY") if "--from" not in rest for source in shlex.split(rest)[:-1]]
    assert {"requirements.txt", "manage.py", "knowsphere", "apps", "templates", "static"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists() or source == "locale", source
        assert f"!{source}" in IGNORED, source
    assert IGNORED.count("*") == 1


def test_secrets_and_state_never_reach_the_builder():
    allowed = {line.removeprefix("!") for line in IGNORED if line.startswith("!")}
    assert not {"var", ".env", ".git", ".venv", "tests"} & allowed


def test_the_image_runs_as_nobody_in_particular():
    users = [rest for name, rest in last_stage() if name == "USER"]
    assert len(users) == 1
    assert users[0] not in {"root", "0"}
    assert f"useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin {users[0]}" in " ".join(
        rest for name, rest in last_stage() if name == "RUN"
    )
    names = [name for name, _ in last_stage()]
    assert names.index("USER") > max(n for n, name in enumerate(names) if name in {"RUN", "COPY"})


def test_the_image_keeps_no_secret():
    assert not re.search(
        r"KEY|PASSWORD|SECRET", " ".join(rest for name, rest in INSTRUCTIONS if name in {"ENV", "ARG"})
    )


def test_the_base_image_is_the_python_that_the_product_is_tested_on():
    [default] = arguments("ARG")
    assert default.startswith("PYTHON=3.11-slim")
    assert all(rest.startswith("python:${PYTHON}") for rest in arguments("FROM"))


@pytest.mark.parametrize("instruction", ["ENTRYPOINT", "HEALTHCHECK"])
def test_what_the_image_runs_is_there(instruction):
    [rest] = arguments(instruction)
    words = json.loads(rest[rest.index("[") :])
    assert words[:3] == ["python", "-m", "knowsphere.entrypoint"]


def test_every_role_has_a_command_that_exists():
    [default] = arguments("CMD")
    roles = [tuple(json.loads(default))]
    roles += [tuple(s["command"]) for s in COMPOSE["services"].values() if s.get("image") == "knowsphere"]
    assert sorted(set(roles)) == [("migrate",), ("web",), ("worker",)]
    for role in roles:
        assert entrypoint.command(list(role))


def test_an_unknown_role_is_a_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "knowsphere.entrypoint", "wbe"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "web | worker | migrate" in done.stderr


def test_a_command_of_ones_own_runs(home):
    done = home.run("-m", "knowsphere.entrypoint", "manage", "version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5.2")


def test_without_a_server_the_probe_fails(home):
    assert home.run("-m", "knowsphere.entrypoint", "healthy", PORT="1").returncode == 1


def test_compose_starts_what_the_product_stands_on():
    services = COMPOSE["services"]
    assert {"web", "worker", "migrate", "database", "redis", "neo4j"} == set(services)
    assert services["database"]["image"].startswith("pgvector/pgvector:pg18")
    assert services["neo4j"]["profiles"], "nothing uses it yet"
    for name in ("web", "worker"):
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert services[name]["read_only"]
        assert services[name]["cap_drop"] == ["ALL"]
    for service in services.values():
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"]
    assert "--lc-ctype=C.UTF-8" in services["database"]["environment"]["POSTGRES_INITDB_ARGS"]


def test_compose_sets_only_variables_that_are_read():
    source = "".join(path.read_text() for path in (ROOT / "knowsphere").glob("*.py"))
    for name in COMPOSE["services"]["web"]["environment"]:
        assert f'"{name}"' in source, name


def test_compose_demands_its_secrets():
    text = (ROOT / "compose.yaml").read_text()
    for name in ("SECRET_KEY", "MASTER_KEY", "POSTGRES_PASSWORD"):
        assert f"${{{name}:?" in text
