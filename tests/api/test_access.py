"""Who may do what through the API: each address by each persona. What is not in the tables fails the build."""

from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import transaction
from django.urls import get_resolver, reverse

from tests.access.personas import PERSONAS
from tests.access.test_routes import tells
from tests.access.world import World
from tests.api.conftest import Caller
from tests.api.tables import OPENAI, TABLE
from tests.api.world import furnish

OPEN = {"schema", "nowhere"}
STRANGERS = ("nobody", "other", "widget", "operator")
GROUPS = (STRANGERS, ("viewer", "member", "department"), ("admin", "owner", "key"))
FILES = {"documents-of-base", "attachments"}


def patterns_of(namespace):
    found = (found for found in get_resolver().url_patterns if getattr(found, "namespace", "") == namespace)
    return [pattern for pattern in next(found).url_patterns if pattern.name not in OPEN]


def addresses(namespace="api"):
    """Every address of the API: name, the names of its arguments, its methods."""
    for pattern in patterns_of(namespace):
        yield pattern.name, tuple(pattern.pattern.converters), tuple(pattern.callback.cls.operations)


def test_every_address_and_method_is_in_the_table():
    for namespace, table in (("api", TABLE), ("openai", OPENAI)):
        assert {(method, name) for name, _, methods in addresses(namespace) for method in methods} == set(table)


@pytest.fixture
def things(acme, ann, bea, handbook):
    return furnish(acme, ann, bea, handbook)


@pytest.fixture
def world(acme, ann, bea, mal, handbook):
    return World(acme, ann, bea, mal, handbook)


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


def asked(things):
    """Every row of the tables as (its name, the method, the address, what is sent and how, the statuses)."""
    arguments = {name: names for name, names, _ in addresses()}
    for (method, name), expected in TABLE.items():
        address = reverse(f"api:{name}", kwargs={argument: getattr(things, argument) for argument in arguments[name]})
        form = {"format": "multipart"} if name in FILES and method == "POST" else {}
        yield name, method, address, body(name, things) if method != "GET" else None, form, expected
    for (method, name), expected in OPENAI.items():
        address = reverse(f"openai:{name}", args=[things.agent_id] if name == "model" else [])
        yield f"openai:{name}", method, address, {} if method == "POST" else None, {}, expected


def test_every_persona_comes():
    assert sorted(persona for group in GROUPS for persona in group) == sorted(PERSONAS)


@pytest.mark.django_db
@pytest.mark.parametrize("group", GROUPS, ids=("strangers", "members", "managers"))
def test_answers_as_the_tables_say(world, group):
    wrong, told = [], []
    for persona in group:
        cache.clear()  # each has a minute's calls
        caller = world.enter(persona, Caller)
        for name, method, address, data, form, expected in asked(world.things):
            with transaction.atomic():
                answer = getattr(caller, method.lower())(address, data, **form)
                transaction.set_rollback(True)
            if answer.status_code != expected[persona]:
                wrong.append((persona, method, name, answer.status_code, expected[persona]))
            if persona in STRANGERS and tells(answer):
                told.append((persona, method, name))
    assert (wrong, told) == ([], [])


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
