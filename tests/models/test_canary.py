"""A stored key is found nowhere: in no dump, page, answer of the API, file, log, event or checkpoint."""

import io
from contextlib import suppress

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from apps.models import ledger, quirks, services
from apps.models.models import ModelConfig
from apps.workspaces.models import User
from tests import canary
from tests.vendor import Reply
from tests.vendor.plugin import CANARY

NAMES = ["list-models", "show-usage", "export-usage"]


def dump():
    """Every row of every table of every schema, as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        tables = [row[0] for row in cursor.fetchall()]
        rows = {}
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {table} t")
            rows[table] = "\n".join(row[0] for row in cursor.fetchall())
    return rows


def ask(person):
    with suppress(SystemExit, CommandError):  # as a command ends whose turn failed
        call_command("ask", "Hello there!", "--as", person.email, "--json")


@pytest.mark.django_db(transaction=True)
def test_a_key_is_found_nowhere(client, acme, ann, vendor, settings, caplog, capsys, monkeypatch):
    quirks.forget()
    monkeypatch.setattr("apps.models.retries.ATTEMPTS", 1)
    settings.OUTBOUND_ALLOW = [f"127.0.0.1:{vendor.port}"]
    echo = f"Incorrect API key provided: {CANARY}. Authorization: Bearer {CANARY}"
    standby = services.add_model(
        workspace=acme, kind="chat", name="standby", base_url=vendor.url, api_key=CANARY, actor=ann
    )
    row = services.add_model(
        workspace=acme, kind="chat", name="main", base_url=vendor.url, api_key=CANARY, actor=ann, is_default=True
    )
    services.change_model(model=row, actor=ann, fallback=standby)
    client.force_login(ann)
    shown = []

    with caplog.at_level("DEBUG"):
        for error in (echo, {"message": echo, "headers": {"authorization": f"Bearer {CANARY}"}}):
            vendor.otherwise = lambda request, error=error: Reply(status=401, error=error)
            services.test_model(model=row, actor=ann)
            ask(ann)
        vendor.otherwise = lambda request: Reply("a b c d", error_after=2, error=echo)
        ask(ann)
        vendor.otherwise = lambda request: Reply("Twenty days.")
        ask(ann)
        said = capsys.readouterr()
        assert "Twenty" in said.out
        assert "a b" in said.out
        shown += [said.out, said.err]
        vendor.listing = (401, {"error": {"message": echo}})
        asked = {"provider": "custom", "base_url": vendor.url, "api_key": CANARY}
        shown.append(client.post(reverse("models:list-offered", args=[acme.slug]), asked).content.decode())
        wrong = {"provider": "custom", "name": "", "base_url": "nowhere", "api_key": CANARY}
        shown.append(client.post(reverse("models:add-model", args=[acme.slug]), wrong).content.decode())
        for name in NAMES:
            shown.append(client.get(reverse(f"models:{name}", args=[acme.slug])).content.decode())
        shown.append(client.get(reverse("models:show-model", args=[acme.slug, row.pk])).content.decode())
        shown.append(client.get("/api/v1/models/").content.decode())
        client.force_login(User.objects.create_superuser("root@example.com", "correct horse battery"))
        for url in ("changelist", "add"):
            shown.append(client.get(reverse(f"admin:models_modelconfig_{url}")).content.decode())
        call_command("dumpdata", "models", stdout=(dumped := io.StringIO()))
        shown.append(dumped.getvalue())
        ledger.flush()

    assert all(request.headers.get("Authorization") == f"Bearer {CANARY}" for request in vendor.requests)
    assert not [text for text in shown if CANARY in text]
    assert CANARY not in caplog.text
    rows = dump()
    assert len(rows) > 40
    assert "standby" in rows["public.models_modelconfig"]
    assert any("checkpoint" in table for table in rows)
    assert not [table for table, text in rows.items() if CANARY in text or CANARY.encode().hex() in text]
    assert ModelConfig.objects.get(pk=row.pk).api_key.reveal() == CANARY
    assert not canary.is_written(CANARY)


def test_a_key_that_was_written_would_be_found(db, acme):
    from apps.workspaces.models import Workspace

    if canary.data_folder() is None:
        pytest.skip("the server's files are not on this machine")
    marker = f"plain {CANARY[::-1]}"
    Workspace.objects.filter(pk=acme.pk).update(name=marker)
    assert canary.is_written(marker)
