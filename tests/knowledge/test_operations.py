"""What operators rely on: checks at the start, a light start, an admin without content."""

import subprocess
import sys

import pytest
from django.urls import reverse
from django_q.models import OrmQ, Schedule

from apps.knowledge.checks import check_queue_times
from apps.knowledge.models import Document
from apps.workspaces.models import User


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"retry": 60, "timeout": 3600}, ["knowsphere.E010"]),
        ({"retry": 100, "timeout": 90}, ["knowsphere.E011"]),
        ({"timeout": None}, ["knowsphere.E010"]),
        ({"ack_failures": False}, ["knowsphere.E012"]),
    ],
)
def test_queue_times_that_would_run_a_step_twice_are_an_error(settings, changes, found):
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **changes}
    assert [message.id for message in check_queue_times()] == found


def test_a_start_imports_nothing_that_only_a_worker_needs():
    reading = {"lxml", "pypdfium2", "bs4", "markdownify", "PIL", "cv2", "rapidocr"}
    heavy = reading | {"numpy", "openvino", "rjieba", "regex"}
    script = (
        "import django, sys; django.setup(); import apps.knowledge.urls, apps.knowledge.services;"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_sweeper_is_scheduled(db):
    assert set(Schedule.objects.values_list("func", "minutes")) >= {
        ("apps.knowledge.tasks.sweep", 1),
        ("apps.knowledge.tasks.sweep_files", None),
    }


@pytest.fixture
def operator(client, db):
    user = User.objects.create_superuser("operator@example.com", "correct horse battery")
    client.force_login(user)
    return user


def test_operators_see_states_and_no_content_and_can_try_again(client, operator, ingest, embedder):
    document = ingest(" ", "very-secret-name.md")
    OrmQ.objects.all().delete()
    address = reverse("admin:knowledge_document_changelist")
    for page in (address, reverse("admin:knowledge_document_change", args=[document.pk])):
        shown = client.get(page).content.decode()
        assert str(document.pk) in shown
        assert "empty_file" in shown
        assert "very-secret-name" not in shown
    client.post(address, {"action": "retry", "_selected_action": [str(document.pk)]})
    document.refresh_from_db()
    assert (document.status, OrmQ.objects.count()) == (Document.Status.UPLOADED, 1)


def test_staff_without_rights_over_all_see_nothing(client, db):
    user = User.objects.create_user("staff@example.com", "correct horse battery", is_staff=True)
    client.force_login(user)
    assert client.get(reverse("admin:knowledge_document_changelist")).status_code == 403
