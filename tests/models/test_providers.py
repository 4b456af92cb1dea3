"""The table of vendors, and what resolution takes from it."""

from decimal import Decimal

import pytest

from apps.common.errors import InvalidInput
from apps.models.configuration import Configuration
from apps.models.models import Kind
from apps.models.providers import VENDORS, facts, vendor_at
from apps.models.resolution import from_environment, from_row
from apps.models.services import add_model


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
def test_every_vendor_can_be_used(vendor):
    assert vendor.kinds <= set(Kind.values)
    assert vendor.key == "custom" or vendor_at(vendor.base_url + "/") == vendor.key
    for known in vendor.models:
        assert known.kind in vendor.kinds
        Configuration.model_validate(facts(vendor.key, known.kind, known.name))


def test_a_known_model_needs_vendor_name_and_key_alone(acme, ann):
    row = add_model(
        workspace=acme, kind="embedding", provider="dashscope", name="text-embedding-v4", api_key="k", actor=ann
    )
    model = from_row(row)
    assert model.base_url == "https://dashscope.aliyuncs.com/compatible-mode/v1"
    assert (model.dimensions, model.max_batch, model.max_input) == (1024, 10, 8192)
    assert (model.price.input, model.price.currency) == (Decimal("0.5"), "CNY")


DOCUMENTED = [
    ("zhipu", "embedding-3", {"dimensions": 2_048, "max_input": 3_072, "max_batch": 64}),
    ("openai", "text-embedding-3-small", {"dimensions": 0, "max_input": 8_192, "max_batch": 2_048}),
    ("jina", "jina-reranker-v3", {"max_input": 131_000, "price": None}),
    ("moonshot", "kimi-k2.6", {"context_window": 256_000, "price": None, "reasoning_replay": "tool_turns"}),
]


@pytest.mark.parametrize(("provider", "name", "wanted"), DOCUMENTED)
def test_what_is_documented_is_known_and_the_rest_is_left_open(acme, ann, provider, name, wanted):
    kind = next(known.kind for known in VENDORS[provider].models if known.name == name)
    model = from_row(add_model(workspace=acme, kind=kind, provider=provider, name=name, api_key="k", actor=ann))
    assert {field: getattr(model, field) for field in wanted} == wanted


def test_what_is_entered_wins_over_what_is_documented(acme, ann):
    row = add_model(
        workspace=acme,
        kind="embedding",
        provider="dashscope",
        name="text-embedding-v4",
        actor=ann,
        configuration={"dimensions": 256},
    )
    assert (from_row(row).dimensions, from_row(row).max_batch) == (256, 10)


def test_what_is_not_known_is_not_invented(acme, ann):
    row = add_model(workspace=acme, kind="chat", provider="openai", name="something-new", actor=ann)
    assert from_row(row).price is None
    optional = {"thinking_switch", "cache_breakpoints"}  # written differently by each vendor, so not tried
    assert from_row(row).capabilities == frozenset(Configuration().capabilities) - optional


def test_a_known_chat_model_brings_its_window_and_its_price(acme, ann):
    row = add_model(workspace=acme, kind="chat", provider="deepseek", name="deepseek-v4-pro", api_key="k", actor=ann)
    model = from_row(row)
    assert (model.context_window, model.max_output) == (1_000_000, 384_000)
    assert (model.price.input, model.price.output, model.price.cached) == (9, 27, Decimal("0.30"))


def test_the_environments_model_is_looked_up_by_its_address(settings):
    settings.EMBEDDING_BASE_URL = "https://dashscope.aliyuncs.com/compatible-mode/v1/"
    settings.EMBEDDING_MODEL = "text-embedding-v2"
    assert from_environment("embedding").max_batch == 25


@pytest.mark.parametrize(("provider", "kind"), [("deepseek", "embedding"), ("jina", "chat"), ("nobody", "chat")])
def test_a_vendor_without_models_of_a_kind_is_refused(acme, ann, provider, kind):
    with pytest.raises(InvalidInput):
        add_model(workspace=acme, kind=kind, provider=provider, name="m", actor=ann)


def test_a_name_keeps_its_slashes(acme, ann):
    row = add_model(workspace=acme, kind="embedding", provider="siliconflow", name=" Pro/BAAI/bge-m3\n", actor=ann)
    assert row.name == "Pro/BAAI/bge-m3"
    assert from_row(row).max_input == 8192


def test_a_custom_vendor_needs_its_address(acme, ann):
    with pytest.raises(InvalidInput):
        add_model(workspace=acme, kind="chat", name="m", actor=ann)
