"""Who may do what through the API. An address or a method that is not in the table fails the build.

Each row: the status for nobody (signed out), mal (another tenant), bea (viewer) and ann (owner).
"""

from uuid import uuid4

import pytest
from django.urls import get_resolver, reverse

from tests.access.test_routes import tells
from tests.api.world import furnish

PERSONAS = ("nobody", "mal", "bea", "ann")
LIST = (401, 200, 200, 200)  # everybody's own, which may be nothing
READ = (401, 404, 200, 200)  # everybody in the workspace
OWN = (401, 404, 404, 200)  # the caller's alone
MANAGE = (401, 404, 404, 200)  # those who may manage the base; for others it is not there
TABLE = {
    ("GET", "workspaces"): LIST,
    ("POST", "workspaces"): (401, 201, 201, 201),
    ("GET", "workspace"): READ,
    ("PATCH", "workspace"): (401, 404, 403, 200),
    ("DELETE", "workspace"): (401, 404, 403, 204),
    ("GET", "quotas"): READ,
    ("POST", "quotas"): (401, 404, 403, 200),
    ("GET", "members"): READ,
    ("GET", "member"): READ,
    ("PATCH", "member"): MANAGE,
    ("DELETE", "member"): (401, 404, 204, 204),  # bea's own: she leaves
    ("POST", "transfer-workspace"): MANAGE,
    ("GET", "invitations"): READ,  # of workspaces that one runs: for others an empty list
    ("POST", "invitations"): (401, 404, 403, 201),
    ("GET", "invitation"): MANAGE,
    ("DELETE", "invitation"): MANAGE,
    ("GET", "audit-events"): LIST,
    ("GET", "audit-event"): MANAGE,
    ("GET", "export-audit-events"): (401, 200, 403, 200),
    ("GET", "departments"): READ,
    ("POST", "departments"): (401, 404, 403, 201),
    ("GET", "department"): READ,
    ("PATCH", "department"): MANAGE,
    ("DELETE", "department"): (401, 404, 404, 204),
    ("GET", "api-keys"): READ,
    ("POST", "api-keys"): (401, 404, 201, 201),
    ("GET", "api-key"): MANAGE,
    ("DELETE", "api-key"): MANAGE,
    ("GET", "knowledge-bases"): LIST,
    ("POST", "knowledge-bases"): (401, 201, 403, 201),
    ("GET", "knowledge-base"): READ,
    ("PATCH", "knowledge-base"): MANAGE,
    ("DELETE", "knowledge-base"): (401, 404, 404, 204),
    ("GET", "documents-of-base"): READ,
    ("POST", "documents-of-base"): (401, 404, 404, 422),
    ("GET", "changed-passages"): MANAGE,
    ("POST", "search-base"): (401, 404, 422, 422),
    ("GET", "shares-of-base"): MANAGE,
    ("POST", "shares-of-base"): (401, 404, 404, 201),
    ("DELETE", "share-of-base"): (401, 404, 404, 204),
    ("GET", "documents"): LIST,
    ("GET", "document"): READ,
    ("PATCH", "document"): MANAGE,
    ("DELETE", "document"): (401, 404, 404, 204),
    ("GET", "shares-of-document"): MANAGE,
    ("POST", "shares-of-document"): (401, 404, 404, 201),
    ("DELETE", "share-of-document"): (401, 404, 404, 404),
    ("GET", "shares-of-folder"): MANAGE,
    ("POST", "shares-of-folder"): (401, 404, 404, 201),
    ("DELETE", "share-of-folder"): (401, 404, 404, 404),
    ("POST", "parse-document"): (401, 404, 404, 202),
    ("POST", "index-document"): (401, 404, 404, 409),
    ("POST", "cancel-document"): (401, 404, 404, 409),
    ("GET", "content-of-document"): READ,
    ("GET", "chunks-of-document"): READ,
    ("GET", "chunks"): LIST,
    ("GET", "chunk"): READ,
    ("GET", "folders-of-base"): READ,
    ("POST", "folders-of-base"): (401, 404, 404, 201),
    ("GET", "fields-of-base"): READ,
    ("POST", "fields-of-base"): (401, 404, 404, 201),
    ("GET", "field"): READ,
    ("DELETE", "field"): (401, 404, 404, 204),
    ("POST", "model-of-base"): (401, 404, 404, 202),
    ("DELETE", "model-of-base"): (401, 404, 404, 204),
    ("GET", "folder"): READ,
    ("PATCH", "folder"): MANAGE,
    ("DELETE", "folder"): (401, 404, 404, 202),
    ("POST", "jobs-of-base"): (401, 404, 404, 201),
    ("GET", "jobs"): LIST,
    ("GET", "job"): MANAGE,
    ("POST", "cancel-job"): (401, 404, 404, 202),
    ("POST", "retry-job"): (401, 404, 404, 422),
    ("GET", "models"): LIST,
    ("POST", "models"): (401, 201, 403, 201),
    ("GET", "model"): READ,
    ("PATCH", "model"): (401, 404, 404, 200),
    ("DELETE", "model"): (401, 404, 404, 204),
    ("POST", "test-model"): (401, 404, 404, 200),
    ("GET", "shares-of-model"): MANAGE,
    ("POST", "shares-of-model"): (401, 404, 404, 201),
    ("DELETE", "share-of-model"): (401, 404, 404, 404),
    ("GET", "usage"): (401, 200, 403, 200),
    ("GET", "budgets"): LIST,
    ("POST", "budgets"): (401, 201, 403, 201),
    ("GET", "budget"): MANAGE,
    ("DELETE", "budget"): (401, 404, 404, 204),
    ("GET", "datasets"): LIST,
    ("POST", "datasets"): (401, 201, 403, 201),
    ("GET", "dataset"): READ,
    ("PATCH", "dataset"): MANAGE,
    ("DELETE", "dataset"): (401, 404, 404, 204),
    ("GET", "cases"): READ,
    ("POST", "cases"): (401, 404, 404, 201),
    ("GET", "case"): READ,
    ("DELETE", "case"): (401, 404, 404, 204),
    ("GET", "shares-of-dataset"): MANAGE,
    ("POST", "shares-of-dataset"): (401, 404, 404, 201),
    ("DELETE", "share-of-dataset"): (401, 404, 404, 404),
    ("GET", "widgets"): LIST,
    ("POST", "widgets"): (401, 201, 403, 201),
    ("GET", "widget"): MANAGE,
    ("PATCH", "widget"): MANAGE,
    ("DELETE", "widget"): (401, 404, 404, 204),
    ("POST", "renew-widget"): MANAGE,
    ("POST", "renew-widget-secret"): (401, 404, 404, 201),
    ("GET", "memory-items"): LIST,
    ("POST", "memory-items"): (401, 201, 201, 201),
    ("GET", "memory-item"): OWN,
    ("PATCH", "memory-item"): OWN,
    ("DELETE", "memory-item"): (401, 404, 404, 204),
    ("GET", "agents"): LIST,
    ("POST", "agents"): (401, 201, 403, 201),
    ("GET", "agent"): READ,
    ("PATCH", "agent"): MANAGE,
    ("DELETE", "agent"): (401, 404, 404, 409),
    ("GET", "shares-of-agent"): MANAGE,
    ("POST", "shares-of-agent"): (401, 404, 404, 201),
    ("DELETE", "share-of-agent"): (401, 404, 404, 404),
    ("GET", "conversations"): LIST,
    ("POST", "conversations"): (401, 201, 201, 201),
    ("GET", "conversation"): OWN,
    ("PATCH", "conversation"): OWN,
    ("DELETE", "conversation"): (401, 404, 404, 204),
    ("GET", "turns-of-conversation"): OWN,
    ("POST", "turns-of-conversation"): (401, 404, 404, 422),
    ("GET", "turns"): LIST,
    ("GET", "turn"): OWN,
    ("GET", "events-of-turn"): OWN,
    ("POST", "stop-turn"): (401, 404, 404, 202),
    ("POST", "feedback-of-turn"): OWN,
    ("DELETE", "feedback-of-turn"): (401, 404, 404, 204),
    ("GET", "citations-of-turn"): OWN,
    ("GET", "messages"): LIST,
    ("GET", "message"): OWN,
    ("GET", "attachments"): LIST,
    ("POST", "attachments"): (401, 422, 422, 422),
    ("GET", "attachment"): OWN,
    ("DELETE", "attachment"): (401, 404, 404, 204),
}
OPENAI = {
    ("GET", "models"): (401, 200, 200, 200),
    ("GET", "model"): (401, 404, 200, 200),
    ("POST", "chat-completions"): (401, 422, 422, 422),
}
OPEN = {"schema", "nowhere"}
FILES = {"documents-of-base", "attachments"}


def addresses():
    """Every address of the API: name, the names of its arguments, its methods."""
    api = next(found for found in get_resolver().url_patterns if getattr(found, "namespace", "") == "api")
    for pattern in api.url_patterns:
        if pattern.name not in OPEN:
            yield pattern.name, tuple(pattern.pattern.converters), tuple(pattern.callback.cls.operations)


def test_every_address_and_method_is_in_the_table():
    found = {(method, name) for name, _, methods in addresses() for method in methods}
    assert found == set(TABLE)


@pytest.fixture
def things(acme, ann, bea, handbook):
    return furnish(acme, ann, bea, handbook)


def body(name, things):
    """What a write sends, where it must be right for the row's status."""
    return {
        "knowledge-bases": {"name": "New"},
        "workspaces": {"name": "New"},
        "quotas": {"user": things.user_id, "kind": "turns", "limit": 5},
        "member": {"role": "member"},
        "invitations": {"role": "viewer"},
        "shares-of-document": {"role": "member", "level": "read"},
        "shares-of-folder": {"role": "member", "level": "read"},
        "shares-of-model": {"role": "member", "level": "manage"},
        "budgets": {"scope": "workspace", "amount": "5"},
        "widgets": {"name": "New"},
        "datasets": {"name": "New", "kind": "intent"},
        "cases": {"text": "Hello", "intent": "greeting"},
        "shares-of-dataset": {"role": "member", "level": "manage"},
        "shares-of-base": {"role": "member", "level": "manage"},
        "departments": {"name": "New"},
        "folders-of-base": {"name": "New"},
        "fields-of-base": {"key": "author", "type": "text"},
        "model-of-base": {"model": "builtin:multilingual-e5-small"},
        "jobs-of-base": {"kind": "retry"},
        "api-keys": {"name": "new", "scopes": ["knowledge:read"]},
        "agents": {"name": "New"},
        "shares-of-agent": {"role": "member", "level": "read"},
        "memory-item": {"text": "Acme has three canteens."},
        "feedback-of-turn": {"good": True},
        "models": {"kind": "chat", "name": "m2", "base_url": "https://models.example/v1"},
        "memory-items": {"text": "I work in Berlin."},
    }.get(name, {})


@pytest.mark.django_db
@pytest.mark.parametrize("persona", PERSONAS)
def test_answers_as_the_table_says(api, things, persona):
    from django.db import transaction

    arguments = {name: names for name, names, _ in addresses()}
    caller = api(persona)
    wrong = []
    for (method, name), expected in TABLE.items():
        address = reverse(f"api:{name}", kwargs={argument: getattr(things, argument) for argument in arguments[name]})
        mark = transaction.savepoint()
        form = {"format": "multipart"} if name in FILES and method == "POST" else {}
        answer = getattr(caller, method.lower())(address, body(name, things) if method != "GET" else None, **form)
        transaction.savepoint_rollback(mark)
        if answer.status_code != expected[PERSONAS.index(persona)]:
            wrong.append((method, name, answer.status_code, getattr(answer, "data", None)))
        if persona in ("nobody", "mal") and tells(answer):
            wrong.append((method, name, "tells of acme"))
    assert wrong == []


@pytest.mark.django_db
def test_an_id_that_is_nobodys_looks_like_one_of_somebody_else(api, things):
    """Each address with one foreign id at a time, as mal, and with an id that does not exist, as ann."""
    for name, arguments, methods in addresses():
        for method in methods:
            for persona, ids in (("mal", vars(things)), ("ann", {key: uuid4() for key in vars(things)})):
                if arguments:
                    address = reverse(f"api:{name}", kwargs={argument: ids[argument] for argument in arguments})
                    answer = getattr(api(persona), method.lower())(address)
                    assert answer.status_code == 404, (persona, method, name)
                    assert answer.json()["code"] == "not_found"
                    assert answer.json()["details"] == {}


@pytest.mark.django_db
@pytest.mark.parametrize("persona", PERSONAS)
def test_the_openai_endpoint_answers_as_its_table_says(api, things, persona):
    patterns = next(found for found in get_resolver().url_patterns if getattr(found, "namespace", "") == "openai")
    routes = {(method, pattern.name) for pattern in patterns.url_patterns for method in pattern.callback.cls.operations}
    assert routes == set(OPENAI)
    for (method, name), expected in OPENAI.items():
        address = reverse(f"openai:{name}", args=[things.agent_id] if name == "model" else [])
        answer = getattr(api(persona), method.lower())(address, {} if method == "POST" else None)
        assert answer.status_code == expected[PERSONAS.index(persona)], (method, name)
        assert persona in ("bea", "ann") or not tells(answer)
