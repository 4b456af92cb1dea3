"""services.test_model: the same path as a real call."""

from dataclasses import replace

import pytest
from django.test import override_settings

from apps.common.errors import NotFound
from apps.models import quirks, reranking, services
from apps.models.models import ModelConfig, UsageRecord
from apps.models.resolution import from_row
from tests.vendor import Reply, call
from tests.vendor.plugin import CANARY


@pytest.fixture
def add(acme, ann, vendor, settings, monkeypatch):
    quirks.forget()
    monkeypatch.setattr("apps.models.retries.ATTEMPTS", 1)
    settings.OUTBOUND_ALLOW = [f"127.0.0.1:{vendor.port}"]

    def add(kind="chat", **more):
        address = more.pop("base_url", vendor.url)
        return services.add_model(
            workspace=acme, kind=kind, name="m", base_url=address, actor=ann, api_key=CANARY, **more
        )

    return add


def test_a_chat_model_shows_what_it_can(add, ann, acme, vendor):
    def otherwise(request):
        body = request.body
        if "tools" in body:
            return Reply(tool_calls=[call("report", {"n": 7})])
        if "response_format" in body:
            return Reply('{"n": 7}')
        return Reply("OK", logprobs={"A": -0.1} if body.get("logprobs") else None)

    vendor.otherwise = otherwise
    trial = services.test_model(model=add(), actor=ann)
    assert (trial.ok, trial.error) == (True, "")
    assert set(trial.capabilities) == {"tools", "logprobs", "json_schema", "stream_usage"}
    assert trial.first_token_ms <= trial.ms
    booked = UsageRecord.objects.filter(workspace=acme, user=ann, purpose="test", outcome="ok")
    assert booked.count() == 4


def test_a_plain_chat_model_still_works(add, ann, vendor):
    vendor.otherwise = lambda request: (
        Reply(status=400, error="tools and logprobs and json are not known here")
        if not request.body.get("stream")
        else Reply("OK", usage=None)
    )
    trial = services.test_model(model=add(), actor=ann)
    assert (trial.ok, trial.capabilities) == (True, ())


@pytest.mark.parametrize("kind", ["embedding", "rerank", "vision", "speech"])
def test_every_kind_is_called_as_it_is_used(add, ann, kind):
    trial = services.test_model(model=add(kind), actor=ann)
    assert (trial.ok, trial.error) == (True, "")
    assert trial.dimensions == (16 if kind == "embedding" else 0)


def test_raw_scores_are_noticed_and_then_read_as_shares_in_every_process(add, ann, vendor):
    row = add("rerank")
    results = [{"index": 0, "relevance_score": 4.0}, {"index": 1, "relevance_score": -6.0}]
    vendor.script([Reply(body={"results": results})], to="rerank")
    assert services.test_model(model=row, actor=ann).ok
    row.refresh_from_db()
    assert row.configuration["logits"] is True
    quirks.forget()  # as another process
    assert reranking._shares(from_row(row), [0.0, 0.5]) == [0.5, pytest.approx(0.6225, abs=1e-4)]
    assert reranking._shares(replace(from_row(row), logits=False), [0.0, 0.5]) == [0.0, 0.5]


def test_a_refusal_shows_the_vendors_first_line_and_no_key(add, ann, vendor):
    vendor.otherwise = lambda request: Reply(status=401, error=f"key {CANARY} is wrong\nsecond line")
    trial = services.test_model(model=add(), actor=ann)
    assert (trial.ok, trial.code) == (False, "model_refused")
    assert "is wrong" in trial.error
    assert CANARY not in trial.error
    assert "second line" not in trial.error


def test_a_private_address_is_not_called(add, ann, vendor, settings):
    settings.OUTBOUND_ALLOW = []
    trial = services.test_model(model=add(), actor=ann)
    assert (trial.ok, trial.code) == (False, "outbound_refused")
    assert not vendor.requests


def test_a_key_that_cannot_be_read_asks_to_enter_it_again(add, ann, vendor):
    import base64
    import os

    model = add()
    with override_settings(MASTER_KEYS=[base64.b64encode(os.urandom(32)).decode()]):
        trial = services.test_model(model=ModelConfig.objects.get(pk=model.pk), actor=ann)
    assert (trial.ok, trial.code) == (False, "secret_unreadable")


@pytest.mark.parametrize("persona", ["bea", "mal"])
def test_only_those_who_may_edit_a_model_test_it(add, persona, request):
    with pytest.raises(NotFound):
        services.test_model(model=add(), actor=request.getfixturevalue(persona))
