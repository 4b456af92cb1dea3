"""A model's line, its circuit breaker, and the model that stands in for it."""

import asyncio
import dataclasses
import threading
from uuid import uuid4

import pytest

from apps.common.errors import InvalidInput
from apps.models import connections, gateway, ledger, pacing, quirks
from apps.models.chat import ChatRequest
from apps.models.resolution import from_environment
from apps.models.services import add_model, change_model
from tests.vendor import Reply

QUESTION = ChatRequest([{"role": "user", "content": "How many days?"}])
DOWN = Reply(status=503, error="down")


@pytest.fixture
async def model(scripted_model, monkeypatch):
    quirks.forget()
    monkeypatch.setattr("apps.models.retries.ATTEMPTS", 1)
    yield from_environment("chat")
    await connections.close()


async def ask(model):
    return "".join([delta.text async for delta in gateway.stream_chat(model, QUESTION)])


async def test_no_more_calls_at_once_than_the_model_takes(model, vendor):
    model = dataclasses.replace(model, max_concurrent=2)
    go = threading.Event()
    vendor.script([Reply("yes", hold=go)] * 4)
    calls = [asyncio.create_task(ask(model)) for _ in range(4)]
    await asyncio.sleep(0.3)
    assert len(vendor.requests) == 2
    go.set()
    assert await asyncio.gather(*calls) == ["yes"] * 4


async def test_a_place_is_free_again_after_a_cancel(model, vendor, monkeypatch):
    monkeypatch.setattr(pacing, "LINE_S", 0.2)
    model = dataclasses.replace(model, max_concurrent=1)
    vendor.script([Reply("yes", stall_after=1), Reply("yes")])
    call = asyncio.create_task(ask(model))
    await asyncio.sleep(0.2)
    with pytest.raises(gateway.ModelOverloaded):
        await ask(model)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert await ask(model) == "yes"


async def test_a_model_that_is_down_is_left_alone_and_then_tried_once(model, vendor, monkeypatch):
    monkeypatch.setattr(pacing, "REST_S", 0.2)
    vendor.script([DOWN] * pacing.FAILURES)
    for _ in range(pacing.FAILURES + 2):
        with pytest.raises(gateway.ModelUnavailable):
            await ask(model)
    assert len(vendor.requests) == pacing.FAILURES
    await asyncio.sleep(0.25)
    assert await ask(model) == "A scripted answer."
    assert await ask(model) == "A scripted answer."


async def test_workspaces_with_the_same_vendor_and_name_do_not_wait_for_each_other(model, vendor):
    ours, theirs = (dataclasses.replace(model, id=uuid4(), max_concurrent=1) for _ in range(2))
    vendor.script([DOWN] * pacing.FAILURES)
    for _ in range(pacing.FAILURES):
        with pytest.raises(gateway.ModelUnavailable):
            await ask(theirs)
    assert await ask(ours) == "A scripted answer."
    pacing.forget()
    go = threading.Event()
    vendor.script([Reply("late", hold=go)])
    held = asyncio.create_task(ask(theirs))
    await asyncio.to_thread(vendor.wait, lambda vendor: len(vendor.requests) == pacing.FAILURES + 2)
    assert await ask(ours) == "A scripted answer."
    go.set()
    assert await held == "late"


async def test_a_refusal_is_no_reason_to_rest(model, vendor):
    vendor.script([Reply(status=401, error="no")] * 6)
    for _ in range(6):
        with pytest.raises(gateway.ModelRefused):
            await ask(model)
    assert len(vendor.requests) == 6


async def test_another_model_answers_while_one_is_down(model, vendor):
    model = dataclasses.replace(model, fallback=dataclasses.replace(model, name="second"))
    vendor.script([DOWN, Reply("from the second")])
    vendor.script([DOWN, Reply("whole")], to="chat")
    assert await ask(model) == "from the second"
    assert (await gateway.chat(model, QUESTION)).text == "whole"
    booked = [(entry.model.name, entry.outcome) for entry in ledger._pending]
    assert booked == [("scripted-chat", "failed"), ("second", "ok")] * 2


async def test_nobody_goes_on_with_an_answer_that_began(model, vendor):
    model = dataclasses.replace(model, fallback=dataclasses.replace(model, name="second"))
    vendor.script([Reply("one two three four", cut_after=2)])
    with pytest.raises(gateway.StreamBroken):
        await ask(model)
    assert len(vendor.requests) == 1


def test_the_stand_in_is_configured(acme, ann, vendor):
    first, second = (
        add_model(workspace=acme, kind="chat", name=name, base_url=vendor.url, actor=ann) for name in ("a", "b")
    )
    change_model(model=first, actor=ann, fallback=second)
    change_model(model=second, actor=ann, fallback=first)
    found = gateway.resolve("chat", workspace_id=acme.pk, explicit=first.pk)
    assert (found.fallback.name, found.fallback.fallback) == ("b", None)
    change_model(model=second, actor=ann, enabled=False)
    assert gateway.resolve("chat", workspace_id=acme.pk, explicit=first.pk).fallback is None


@pytest.mark.parametrize("kinds", [("chat", "vision"), ("embedding", "embedding")])
def test_not_every_model_may_stand_in(acme, ann, vendor, kinds):
    first, second = (add_model(workspace=acme, kind=kind, name=kind, base_url=vendor.url, actor=ann) for kind in kinds)
    with pytest.raises(InvalidInput):
        change_model(model=first, actor=ann, fallback=second)
