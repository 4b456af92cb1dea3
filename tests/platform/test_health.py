"""GET /healthz and /readyz."""

import psycopg
import pytest

from apps.common import health
from apps.common.database import conninfo

pytestmark = pytest.mark.django_db


def test_alive(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.post("/healthz").status_code == 405


def test_without_a_worker_pages_are_still_served(client):
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "degraded", "database": "ok", "queue": "down", "storage": "ok", "models": "ok"}


def test_everything_is_there(client):
    with psycopg.connect(conninfo(), application_name="knowsphere-worker"):
        assert client.get("/readyz").json()["status"] == "ok"


@pytest.mark.parametrize(("part", "status"), [("database", 503), ("queue", 200), ("models", 200), ("storage", 200)])
def test_the_part_that_is_down_is_named_and_its_reason_is_not_shown(client, monkeypatch, part, status):
    monkeypatch.setitem(health.PROBES._paths, part, f"{__name__}.broken_probe")
    answer = client.get("/readyz")
    assert answer.status_code == status
    assert answer.json()[part] == "down"
    assert "hunter2" not in answer.content.decode()


def broken_probe():
    raise RuntimeError("password=hunter2")
