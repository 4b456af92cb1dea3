"""The pages of models and of their use."""

import csv
import io
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.urls import reverse

from apps.models import ledger, reports, services
from apps.models.accounting import Caller, Entry, cost_of
from apps.models.chat import Price, ResolvedModel, Usage
from apps.models.models import ModelConfig
from tests.vendor import Reply
from tests.vendor.plugin import CANARY


@pytest.fixture
def post(client, acme, ann):
    client.force_login(ann)

    def post(route, *args, **data):
        return client.post(reverse(f"models:{route}", args=[acme.slug, *args]), data, follow=True)

    return post


@pytest.fixture
def page(client, acme, ann):
    client.force_login(ann)
    return lambda route: client.get(reverse(f"models:{route}", args=[acme.slug])).content.decode()


def test_a_model_is_added_with_vendor_name_and_key(post, page):
    answer = post("add-model", provider="dashscope", name="text-embedding-v4", api_key=CANARY, kind="embedding")
    row = ModelConfig.objects.get()
    assert (row.base_url, row.api_key.reveal()) == ("https://dashscope.aliyuncs.com/compatible-mode/v1", CANARY)
    assert "text-embedding-v4" in page("list-models")
    assert CANARY not in answer.content.decode() + page("list-models")


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "embedding"}, {"api_key": ""}, {"name": ""}, {"provider": "custom"}, {"base_url": "nowhere"}],
)
def test_what_a_vendor_needs_is_asked_for(post, wrong):
    answer = post("add-model", **{"provider": "deepseek", "name": "m", "api_key": CANARY, "kind": "chat", **wrong})
    assert answer.status_code == 422
    assert CANARY not in answer.content.decode()
    assert not ModelConfig.objects.exists()


def test_a_model_is_tested_chosen_switched_off_and_deleted(post, page, acme, ann, vendor, settings):
    settings.OUTBOUND_ALLOW = [f"127.0.0.1:{vendor.port}"]
    row = services.add_model(workspace=acme, kind="chat", name="m-1", base_url=vendor.url, actor=ann)
    assert "answered in" in post("test-model", row.pk).content.decode()
    vendor.script([Reply(status=401, error="no such key")])
    assert "no such key" in post("test-model", row.pk).content.decode()
    post("choose-model", row.pk)
    assert "this workspace" in page("list-models")
    assert "is in use" in post("delete-model", row.pk).content.decode()
    post("choose-model", row.pk)
    post("switch-model", row.pk)
    row.refresh_from_db()
    assert (row.is_default, row.enabled) == (False, False)
    post("delete-model", row.pk)
    assert not ModelConfig.objects.exists()


def use(workspace, name="m", price=None, outcome="ok", usage=None):
    usage = usage or Usage(1_000, 200, 400)
    model = ResolvedModel("chat", "openai_compatible", name, price=price)
    ledger.book(
        Entry(datetime.now(UTC), Caller(workspace.pk), model, "answer", usage, 40, outcome, cost_of(usage, price))
    )
    ledger.flush()


def test_the_page_sums_up_by_model_and_day(page, acme, mal):
    from apps.workspaces.models import Workspace

    assert "Nothing used yet" in page("show-usage")
    use(acme, "priced", Price(Decimal(2), Decimal(8), currency="CNY"))
    use(acme, "priced", Price(Decimal(2), Decimal(8), currency="CNY"), outcome="failed")
    use(acme, "unpriced")
    use(Workspace.objects.exclude(pk=acme.pk).get(), "of-others")
    shown = page("show-usage")
    assert "0.0072 CNY" in shown
    assert "2,000" in shown  # tokens into the priced model
    assert "3,600" in shown  # of the day
    assert "1 call has no known price" in shown
    assert "of-others" not in shown
    assert shown.count("<rect") == reports.DAYS


def test_the_file_holds_the_same_and_no_formulas(client, acme, ann):
    use(acme, '=HYPERLINK("x")', Price(Decimal(2), currency="USD"))
    client.force_login(ann)
    raw = client.get(reverse("models:export-usage", args=[acme.slug])).content.decode()
    assert raw.startswith("\ufeff")
    (row,) = csv.DictReader(io.StringIO(raw.removeprefix("\ufeff")))
    assert row["model"] == 'openai_compatible:=HYPERLINK("x")'
    assert (row["calls"], row["tokens_in"], row["currency"]) == ("1", "1000", "USD")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "＝1", "＋1", "－1", "＠x"])
def test_a_formula_is_a_text(text):
    assert reports.neutral(text) == "'" + text


@pytest.mark.parametrize("value", [-5, Decimal("-0.5"), "a=b", ""])
def test_numbers_and_plain_texts_stay(value):
    assert reports.neutral(value) == value
