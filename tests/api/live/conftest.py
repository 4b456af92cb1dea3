"""The product's own server in a thread, its runner scripted, and callers with keys."""

import asyncio

import httpx
import pytest

from tests.conversations.live.conftest import db, people, server  # noqa: F401

ALL = (
    "knowledge:write",
    "conversations:write",
    "agents:read",
    "memory:write",
    "models:write",
    "workspace:write",
    "evaluations:write",
)


@pytest.fixture(scope="module")
def secret(people):  # noqa: F811
    """A key of ann's that may do all that a program usually does."""
    from apps.workspaces.services import create_api_key

    return create_api_key(workspace=people.acme, name="program", scopes=ALL, actor=people.ann)[1]


@pytest.fixture(scope="module")
def address(server):  # noqa: F811
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def caller(address, secret):
    """An HTTP client that holds the key."""
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=f"{address}/api/v1/", headers=headers, timeout=60) as client:
        yield client


@pytest.fixture
def ask(caller):
    """Ask in a conversation of its own; return the turn as it was begun."""

    def ask(text, conversation=None):
        talk = conversation or caller.post("conversations", json={}).json()["id"]
        answer = caller.post(f"conversations/{talk}/turns", json={"text": text})
        assert answer.status_code == 201, answer.text
        return answer.json()

    return ask


@pytest.fixture
def over(caller):
    """Wait for a turn's end; return it."""

    def over(turn):
        for _ in range(600):
            now = caller.get(f"turns/{turn['id']}").json()
            if now["status"] not in ("queued", "running"):
                return now
            asyncio.run(asyncio.sleep(0.1))
        raise AssertionError("the turn did not end")

    return over
