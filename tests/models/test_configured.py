"""Configured models: services, the operator's admin, and keys that are never shown."""

import json

import pytest
from django.core.checks import run_checks
from django.urls import reverse

from apps.common.errors import InvalidInput, NotAllowed, NotFound
from apps.common.fields import MASK
from apps.models import gateway
from apps.models.models import ModelConfig
from apps.models.services import add_model, change_model
from apps.workspaces.models import User
from tests.vendor.plugin import CANARY

ADDRESS = "https://models.example.com/v1"


@pytest.fixture
def operator(db):
    return User.objects.create_superuser("root@example.com", "correct horse battery")


@pytest.fixture
def theirs(acme, ann):
    return add_model(
        workspace=acme,
        kind="chat",
        name="secret-project",
        base_url=ADDRESS + "/",
        api_key=CANARY,
        actor=ann,
        is_default=True,
    )


def test_an_owner_adds_a_model_and_it_answers_for_the_workspace(theirs, acme):
    found = gateway.resolve("chat", workspace_id=acme.pk)
    assert (found.id, found.base_url, found.key.reveal()) == (theirs.pk, ADDRESS, CANARY)
    assert found.guarded


@pytest.mark.parametrize(("persona", "error"), [("bea", NotAllowed), ("mal", NotFound)])
def test_others_may_not(theirs, acme, persona, error, request):
    actor = request.getfixturevalue(persona)
    with pytest.raises(error):
        add_model(workspace=acme, kind="chat", name="m", base_url=ADDRESS, actor=actor)
    with pytest.raises(NotFound):
        change_model(model=theirs, actor=actor, enabled=False)


def test_the_operators_models_are_staffs_alone(ann, operator, acme):
    with pytest.raises(NotAllowed):
        add_model(workspace=None, kind="chat", name="m", base_url=ADDRESS, actor=ann)
    model = add_model(workspace=None, kind="chat", name="m", base_url=ADDRESS, actor=operator, is_default=True)
    with pytest.raises(NotFound):
        change_model(model=model, actor=ann, enabled=False)
    assert not gateway.resolve("chat", workspace_id=acme.pk).guarded


def test_a_new_default_takes_the_old_ones_place(theirs, acme, ann):
    second = add_model(workspace=acme, kind="chat", name="b", base_url=ADDRESS, actor=ann, is_default=True)
    theirs.refresh_from_db()
    assert (theirs.is_default, second.is_default) == (False, True)


@pytest.mark.parametrize("key", ["", "  ", MASK])
def test_an_empty_or_masked_key_keeps_the_stored_one(theirs, ann, key):
    change_model(model=theirs, actor=ann, api_key=key, name="renamed")
    stored = ModelConfig.objects.get(pk=theirs.pk)
    assert (stored.name, stored.api_key.reveal()) == ("renamed", CANARY)


SHOWN_TO_ALL = [
    *("https://me:pw@models.example.com/v1", "https://me@models.example.com/v1", ADDRESS + "?api_key=sk-1"),
    *(ADDRESS + "#sk-1", ADDRESS + "/chat/completions", ADDRESS + "/embeddings"),
]


@pytest.mark.parametrize("address", SHOWN_TO_ALL)
def test_an_address_holds_no_secret_and_no_path_of_one_call(theirs, acme, ann, address):
    with pytest.raises(InvalidInput):
        add_model(workspace=acme, kind="chat", name="m", base_url=address, actor=ann)
    with pytest.raises(InvalidInput):
        change_model(model=theirs, actor=ann, base_url=address, api_key="sk-other-key-123")


def test_a_mask_is_no_key(acme, ann):
    with pytest.raises(InvalidInput):
        add_model(workspace=acme, kind="chat", name="m", base_url=ADDRESS, api_key=f" {MASK} ", actor=ann)


def test_a_key_does_not_follow_to_another_address(theirs, ann):
    with pytest.raises(InvalidInput):
        change_model(model=theirs, actor=ann, base_url="https://evil.example.com/v1")
    change_model(model=theirs, actor=ann, base_url="https://new.example.com/v1", api_key="sk-other-key-123")
    assert ModelConfig.objects.get(pk=theirs.pk).api_key.reveal() == "sk-other-key-123"


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "ftp://x"},
        {"base_url": ""},
        {"kind": "dance"},
        {"configuration": {"max_batch": 0}},
        {"base_url": "x y"},
    ],
)
def test_values_that_cannot_be_right_are_named(acme, ann, wrong):
    values = {"kind": "chat", "name": "m", "base_url": ADDRESS, **wrong}
    with pytest.raises(InvalidInput) as caught:
        add_model(workspace=acme, actor=ann, **values)
    assert caught.value.details["field"]
    assert not ModelConfig.objects.exists()


def test_the_admin_shows_no_key_and_nothing_of_a_tenant(theirs, operator, client):
    own = add_model(workspace=None, kind="chat", name="own-model", base_url=ADDRESS, api_key=CANARY, actor=operator)
    client.force_login(operator)
    pages = [
        client.get(reverse("admin:models_modelconfig_changelist")),
        client.get(reverse("admin:models_modelconfig_change", args=[theirs.pk])),
        client.get(reverse("admin:models_modelconfig_change", args=[own.pk])),
    ]
    assert [page.status_code for page in pages] == [200, 200, 200]
    shown = "".join(page.content.decode() for page in pages)
    assert "own-model" in shown
    assert CANARY not in shown
    assert "secret-project" not in shown
    assert "models.example.com" not in pages[1].content.decode()


def test_the_admin_keeps_a_key_that_is_not_entered(operator, client):
    own = add_model(workspace=None, kind="chat", name="m", base_url=ADDRESS, api_key=CANARY, actor=operator)
    client.force_login(operator)
    url = reverse("admin:models_modelconfig_change", args=[own.pk])
    form = {
        "provider": "custom",
        "name": "n",
        "base_url": ADDRESS,
        "configuration": "{}",
        "enabled": "on",
        "new_key": "",
    }
    assert client.post(url, form).status_code == 302
    own.refresh_from_db()
    assert (own.name, own.api_key.reveal()) == ("n", CANARY)
    assert client.post(url, {**form, "base_url": "https://evil.example.com/v1"}).status_code == 200  # asks for the key
    assert client.post(url, {**form, "configuration": json.dumps({"dance": 1})}).status_code == 200
    own.refresh_from_db()
    assert (own.base_url, own.configuration) == (ADDRESS, {})


def test_the_admin_adds_a_default_in_the_old_ones_place(operator, client):
    add_model(workspace=None, kind="chat", name="old", base_url=ADDRESS, actor=operator, is_default=True)
    client.force_login(operator)
    form = {
        "kind": "chat", "provider": "custom", "name": "new", "base_url": ADDRESS, "configuration": "", "enabled": "on",
        "is_default": "on", "new_key": CANARY,
    }  # fmt: skip
    assert client.post(reverse("admin:models_modelconfig_add"), form).status_code == 302
    assert [(m.name, m.is_default) for m in ModelConfig.objects.order_by("name")] == [("new", True), ("old", False)]


GOOD = {"CHAT_MODEL": "gpt-5", "OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_API_KEY": "sk-1"}
WRONG = {
    "a name with a blank": {"CHAT_MODEL": "gpt 5"},
    "a name with a line end": {"CHAT_MODEL": "gpt\n5"},
    "an endless name": {"CHAT_MODEL": "x" * 201},
    "no address": {"OPENAI_BASE_URL": ""},
    "a password in the address": {"OPENAI_BASE_URL": "https://me:pw@models.example.com/v1"},
    "the path of one call": {"OPENAI_BASE_URL": "https://models.example.com/v1/chat/completions"},
    "a key with a blank": {"OPENAI_API_KEY": f"{CANARY} oops"},
    "a key with letters of another script": {"OPENAI_API_KEY": "密钥"},
    "no key for OpenAI": {"OPENAI_API_KEY": ""},
    "a fast model alone": {"CHAT_MODEL": "", "FAST_MODEL": "gpt-5-mini"},
    "an embedding model at no address": {"EMBEDDING_MODEL": "bge-m3", "EMBEDDING_BASE_URL": ""},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_model_of_the_environment_that_cannot_be_right_refuses_to_start(settings, wrong):
    for name, value in {**GOOD, **wrong}.items():
        setattr(settings, name, value)
    found = [problem for problem in run_checks() if problem.id == "knowsphere.E010"]
    assert found
    assert any(problem.msg.startswith(name) for problem in found for name in [*wrong, "OPENAI_API_KEY"])
    assert CANARY not in str(found)


def test_one_that_can_be_right_starts(settings):
    for name, value in GOOD.items():
        setattr(settings, name, value)
    assert not [problem for problem in run_checks() if problem.id == "knowsphere.E010"]
