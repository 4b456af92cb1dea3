"""Which model is chosen, and by whom."""

import uuid

import pytest
from django.core.exceptions import ValidationError

from apps.models import gateway
from apps.models.configuration import validate_configuration
from apps.models.models import ModelConfig
from apps.models.resolution import from_row
from tests.vendor.plugin import CANARY


@pytest.fixture
def add(db):
    def add(workspace=None, name="m", kind="chat", **fields):
        fields = {"is_default": True, "base_url": "http://models.test/v1/", **fields}
        return ModelConfig.objects.create(workspace=workspace, kind=kind, name=name, **fields)

    return add


def test_without_anything_configured_the_built_in_models_answer(acme):
    assert gateway.resolve("chat", workspace_id=acme.pk).provider == "builtin"
    assert gateway.resolve("embedding", workspace_id=acme.pk).reference == "builtin:multilingual-e5-small"
    assert gateway.resolve("embedding", workspace_id=None).dimensions == 384
    with pytest.raises(gateway.ModelUnavailable):
        gateway.resolve("vision", workspace_id=acme.pk)


def test_each_step_wins_over_the_next(acme, add, settings):
    settings.CHAT_MODEL, settings.OPENAI_BASE_URL = "from-environment", "http://environment.test/v1"
    found = gateway.resolve("chat", workspace_id=acme.pk)
    assert (found.name, found.base_url, found.id) == ("from-environment", "http://environment.test/v1", None)
    add(name="operator")
    assert gateway.resolve("chat", workspace_id=acme.pk).name == "operator"
    add(acme, "own")
    found = gateway.resolve("chat", workspace_id=acme.pk)
    assert (found.name, found.base_url) == ("own", "http://models.test/v1")
    explicit = add(acme, "explicit", is_default=False)
    assert gateway.resolve("chat", workspace_id=acme.pk, explicit=explicit.pk).name == "explicit"


def test_the_fast_model_is_the_environments_where_it_decides(acme, add, settings):
    settings.CHAT_MODEL, settings.FAST_MODEL = "big", "small"
    assert gateway.resolve("chat", workspace_id=acme.pk, fast=True).name == "small"
    settings.FAST_MODEL = ""
    assert gateway.resolve("chat", workspace_id=acme.pk, fast=True).name == "big"
    add(acme, "own")
    assert gateway.resolve("chat", workspace_id=acme.pk, fast=True).name == "own"


def test_a_fast_model_stands_beside_the_main_one_at_each_place(acme, add):
    add(name="operators")
    add(name="operators-fast", is_default=False, is_fast=True)
    names = [gateway.resolve("chat", workspace_id=acme.pk, fast=fast).name for fast in (False, True)]
    assert names == ["operators", "operators-fast"]
    assert gateway.resolve("chat", workspace_id=None, fast=True).name == "operators-fast"
    add(acme, "own-fast", is_default=False, is_fast=True)
    names = [gateway.resolve("chat", workspace_id=acme.pk, fast=fast).name for fast in (False, True)]
    assert names == ["operators", "own-fast"]
    add(acme, "own")
    assert gateway.resolve("chat", workspace_id=acme.pk, grade=True).name == "own-fast"
    ModelConfig.objects.filter(name="own-fast").update(enabled=False)
    assert gateway.resolve("chat", workspace_id=acme.pk, fast=True).name == "own"


def test_evidence_is_judged_by_a_model_of_its_own_where_the_environment_names_one(acme, settings):
    settings.CHAT_MODEL, settings.FAST_MODEL = "big", "small"
    assert gateway.resolve("chat", workspace_id=acme.pk, grade=True).name == "small"
    settings.GRADE_MODEL = "judge"
    assert gateway.resolve("chat", workspace_id=acme.pk, grade=True).name == "judge"
    assert gateway.resolve("chat", workspace_id=acme.pk, fast=True).name == "small"


@pytest.mark.parametrize(
    ("kind", "prefix", "base"),
    [("rerank", "RERANK", "RERANK"), ("speech", "ASR", "ASR"), ("vision", "VISION", "OPENAI")],
)
def test_the_environment_names_models_of_every_kind(acme, settings, kind, prefix, base):
    setattr(settings, f"{prefix}_MODEL", "m")
    setattr(settings, f"{base}_BASE_URL", "http://environment.test/v1")
    setattr(settings, f"{base}_API_KEY", CANARY)
    found = gateway.resolve(kind, workspace_id=acme.pk)
    assert (found.kind, found.name, found.base_url) == (kind, "m", "http://environment.test/v1")
    assert found.key.reveal() == CANARY
    assert not found.guarded


def test_an_explicit_model_is_never_replaced(acme, mal, add):
    theirs = add(mal.memberships.get().workspace, "theirs")
    off = add(acme, "off", enabled=False)
    for explicit in (theirs.pk, off.pk, uuid.uuid4()):
        with pytest.raises(gateway.ModelUnavailable):
            gateway.resolve("chat", workspace_id=acme.pk, explicit=explicit)
    assert gateway.resolve("chat", workspace_id=acme.pk).provider == "builtin"


def test_a_reference_finds_its_model_again(acme, add, settings):
    builtin = gateway.resolve("embedding", workspace_id=acme.pk)
    settings.EMBEDDING_MODEL = "bge-m3"
    named = gateway.resolve("embedding", workspace_id=acme.pk)
    assert gateway.resolve_reference("embedding", builtin.reference, workspace_id=acme.pk) == builtin
    assert gateway.resolve_reference("embedding", named.reference, workspace_id=acme.pk).name == "bge-m3"
    assert gateway.resolve_reference("embedding", "", workspace_id=acme.pk).name == "bge-m3"
    row = add(acme, "own-embedder", kind="embedding", is_default=False)
    reference = from_row(row).reference
    assert gateway.resolve_reference("embedding", reference, workspace_id=acme.pk).id == row.pk
    row.delete()
    with pytest.raises(gateway.ModelUnavailable):
        gateway.resolve_reference("embedding", reference, workspace_id=acme.pk)


def test_configured_limits_and_key_arrive(acme, add):
    add(acme, api_key=CANARY, configuration={"context_window": 128_000, "capabilities": ["tools"]})
    found = gateway.resolve("chat", workspace_id=acme.pk)
    assert (found.context_window, found.capabilities) == (128_000, frozenset({"tools"}))
    assert found.key.reveal() == CANARY
    assert CANARY not in f"{found} {found!r}"


@pytest.mark.parametrize("value", [{"context_window": 5}, {"max_batch": "many"}, {"unknown": 1}, [], None])
def test_a_configuration_that_is_none_is_refused(value):
    with pytest.raises(ValidationError):
        validate_configuration(value)


def test_a_configuration_that_cannot_be_read_is_a_clear_failure(acme, add):
    add(acme, configuration={"context_window": "wide"})
    with pytest.raises(gateway.ModelUnavailable, match="cannot be read"):
        gateway.resolve("chat", workspace_id=acme.pk)


def test_tokens_are_counted_without_a_network(acme, settings):
    count = gateway.token_counter(gateway.resolve("embedding", workspace_id=acme.pk))
    assert (count(""), count("hello world"), count("你好，世界")) == (0, 3, 4)
    settings.CHAT_MODEL = "any"
    estimate = gateway.token_counter(gateway.resolve("chat", workspace_id=acme.pk))
    assert estimate("") == 0
    assert 1 <= estimate("hello world") <= 4
    assert 60 <= estimate("二十天年假" * 20) <= 110
