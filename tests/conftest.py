"""What every test starts from: a real PostgreSQL, and four people.

ann owns the workspace "acme", bea views it, mal owns another tenant, "nobody" is signed out.
"""

import os
from pathlib import Path

import hypothesis
import pytest

from knowsphere import postgres

pytest_plugins = ["tests.vendor.plugin", "tests.canary"]

postgres.hold()

# How long a draw takes says how busy the machine is, nothing about what is drawn.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


@pytest.fixture(autouse=True, scope="session")
def _files(tmp_path_factory):
    """Keep files that tests store out of the state folder."""
    from django.core.files.storage import default_storage

    default_storage.location = str(tmp_path_factory.mktemp("files"))


@pytest.fixture(autouse=True, scope="session")
def _no_heart():
    """Renew no lease from another connection: it would not see the rows of a test's open transaction."""
    from apps.knowledge.services import work

    work.RENEW_EVERY_S = 3600.0


@pytest.fixture(autouse=True)
def _own_ledger():
    """Leave no calls of one test to be written in another, and no model that one test found down."""
    from apps.models import ledger, pacing

    yield
    ledger.forget_pending()
    pacing.forget()


@pytest.fixture(autouse=True)
def _own_language():
    """Leave no language and no time zone behind: a request of the test client activates the person's for its thread."""
    from django.utils import timezone, translation

    translation.deactivate()
    timezone.deactivate()


@pytest.fixture
def data_folder():
    """The folder of public test data; tests that need it are skipped without."""
    folder = os.environ.get("KNOWSPHERE_TEST_DATA", "")
    if not folder:
        pytest.skip("KNOWSPHERE_TEST_DATA is not set")
    return Path(folder)


def person(email):
    from apps.workspaces.models import User

    return User.objects.create_user(email, "correct horse battery")


@pytest.fixture
def ann(db):
    return person("ann@example.com")


@pytest.fixture
def bea(acme):
    from apps.workspaces.models import Role
    from apps.workspaces.services import set_membership

    user = person("bea@example.com")
    set_membership(workspace=acme, user=user, role=Role.VIEWER)
    return user


@pytest.fixture
def mal(db):
    from apps.workspaces.services import create_workspace

    user = person("mal@example.com")
    create_workspace(name="Mallory", owner=user)
    return user


@pytest.fixture
def acme(ann):
    from apps.workspaces.services import create_workspace

    return create_workspace(name="Acme", owner=ann)


@pytest.fixture
def handbook(acme, ann):
    """An open, empty knowledge base of acme."""
    from apps.knowledge.models import KnowledgeBase

    return KnowledgeBase.objects.create(workspace=acme, name="Handbook", created_by=ann)
