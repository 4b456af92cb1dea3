"""A real uvicorn in a thread of its own, on the test database, for the tests of one module.

Its rows are committed, so they are made once and erased at the end of the module; each test has a
conversation of its own.
"""

import threading
from contextlib import contextmanager

import pytest
import uvicorn
from django.db import connection

from tests.conversations import scripted
from tests.conversations.live.client import Tab


class Server(threading.Thread):
    """uvicorn as the product runs it."""

    def __init__(self, application):
        super().__init__(daemon=True)
        config = uvicorn.Config(
            application, port=0, ws="websockets-sansio", loop="uvloop", lifespan="on", log_level="error",
            ws_per_message_deflate=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        self.server = uvicorn.Server(config)

    def run(self):
        self.server.run()

    def start(self):
        super().start()
        for _ in range(1200):
            if self.server.started:
                break
            threading.Event().wait(0.05)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    def stop(self):
        self.server.should_exit = True
        self.join(20)


@contextmanager
def serving(engine, **options):
    """A server of the product's own application, with a scripted runner."""
    from apps.agents import afterwards
    from knowsphere.asgi import application

    engine.run_turn, engine.grace_s = scripted.run_turn, 0.3
    quiet, afterwards.QUIET_S = afterwards.QUIET_S, 0.05  # tests wait for notes
    server = Server(application)
    try:
        yield server.start()
    finally:
        server.stop()
        engine.run_turn, afterwards.QUIET_S = None, quiet


@pytest.fixture(scope="module")
def db(django_db_setup, django_db_blocker):
    """In place of pytest-django's: let this module's tests commit rows; erase all of them afterwards."""
    from django.core.management import call_command

    with django_db_blocker.unblock():
        assert connection.settings_dict["NAME"].startswith("test_")
        yield
        call_command("flush", verbosity=0, interactive=False)
        connection.close()


@pytest.fixture(scope="module")
def server(db):
    from apps.conversations.engine import ENGINE

    with serving(ENGINE) as server:
        yield server


class People:
    """ann and bea of Acme, mal of another workspace; each with a session."""

    def __init__(self):
        from apps.workspaces.models import Role
        from apps.workspaces.services import create_workspace, set_membership
        from tests.conftest import person

        self.ann, self.bea, self.mal = (person(f"{name}@socket.example") for name in ("ann", "bea", "mal"))
        self.acme = create_workspace(name="Acme", owner=self.ann)
        set_membership(workspace=self.acme, user=self.bea, role=Role.VIEWER)
        create_workspace(name="Mallory", owner=self.mal)

    def session(self, user):
        from importlib import import_module

        from django.conf import settings
        from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

        session = import_module(settings.SESSION_ENGINE).SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "allauth.account.auth_backends.AuthenticationBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.create()
        return session.session_key


@pytest.fixture(scope="module")
def people(db):
    return People()


@pytest.fixture(scope="module")
def session(people):
    """ann's session."""
    return people.session(people.ann)


@pytest.fixture
def conversation(people):
    from apps.conversations.services import start_conversation

    return start_conversation(workspace=people.acme, actor=people.ann)


@pytest.fixture
def tab(server, session, conversation):
    """Open a tab on this test's conversation."""
    return lambda **options: Tab(server, conversation.pk, **{"session": session, **options})


def turns_used(people):
    """What ann's questions of today have been counted to."""
    from apps.workspaces.models import Quota

    found = Quota.objects.filter(workspace=people.acme, user=people.ann, kind="turns").first()
    return found.used if found else 0
