"""Every call through the gateway is booked: for whom, what, how much, how it ended."""

import asyncio
import dataclasses
from contextlib import aclosing
from decimal import Decimal
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.db import DataError, OperationalError
from django.urls import reverse

from apps.common.fields import Secret, SecretUnreadable
from apps.models import connections, gateway, ledger, quirks
from apps.models.accounting import Caller, charged_to, cost_of
from apps.models.chat import ChatRequest, Price, ResolvedModel, Usage
from apps.models.models import UsageRecord
from apps.models.resolution import BUILTIN, from_environment, from_row
from apps.models.services import add_model
from apps.workspaces.models import User
from tests.vendor import Reply

QUESTION = ChatRequest([{"role": "user", "content": "How many days?"}], purpose="answer")
USED = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}


@pytest.fixture
async def model(scripted_model, monkeypatch):
    quirks.forget()
    monkeypatch.setattr("apps.models.retries.FIRST_PAUSE_S", 0.01)
    yield from_environment("chat")
    await connections.close()


@pytest.fixture
def caller(db):
    return Caller(uuid4(), uuid4(), uuid4(), uuid4(), uuid4())


def booked():
    return [
        SimpleNamespace(
            who=entry.caller,
            model=entry.model.name,
            kind=entry.model.kind,
            purpose=entry.purpose,
            tokens=(entry.usage.prompt, entry.usage.completion, entry.usage.cached),
            estimated=entry.usage.estimated,
            outcome=entry.outcome,
        )
        for entry in ledger._pending
    ]


async def ask(model, stop=None):
    async for _delta in gateway.stream_chat(model, QUESTION, stop=stop):
        pass


async def test_a_streamed_answer_counts_as_the_vendor_says(model, vendor, caller):
    vendor.script([Reply("Twenty days.", usage=USED)])
    with charged_to(caller):
        await ask(model)
    (row,) = booked()
    assert row.who is caller
    assert (row.model, row.kind, row.purpose, row.outcome) == ("scripted-chat", "chat", "answer", "ok")
    assert (row.tokens, row.estimated) == ((100, 20, 60), False)


async def test_a_whole_answer_and_vectors_count_too(model, vendor, caller):
    embedder = ResolvedModel("embedding", "openai_compatible", "e", vendor.url, max_batch=2)
    vendor.script([Reply("Yes", usage=USED)], to="chat")
    with charged_to(caller):
        await gateway.chat(model, QUESTION)
        await gateway.embed(embedder, ["one", "two", "three"], purpose="query")
    chat, vectors = booked()
    assert chat.tokens == (100, 20, 60)
    assert (vectors.kind, vectors.purpose, vectors.tokens, vectors.estimated) == (
        "embedding",
        "query",
        (11, 0, 0),
        False,
    )


def test_vectors_for_the_worker_are_booked_to_its_caller(caller, vendor):
    embedder = ResolvedModel("embedding", "openai_compatible", "e", vendor.url)
    with charged_to(caller):
        gateway.embed_now(embedder, ["one"], purpose="passage")
    assert [(row.who, row.purpose) for row in booked()] == [(caller, "passage")]


async def test_an_answer_that_is_left_counts_what_was_written(model, vendor, caller):
    vendor.script([Reply("many words " * 20, stall_after=10)])
    with charged_to(caller):
        async with aclosing(gateway.stream_chat(model, QUESTION)) as deltas:
            async for _delta in deltas:
                break
    (row,) = booked()
    assert (row.outcome, row.estimated) == ("cancelled", True)
    assert row.tokens[0] > 0
    assert row.tokens[1] > 0


async def test_an_answer_that_is_stopped_or_cancelled_counts(model, vendor):
    vendor.script([Reply("many words " * 20, stall_after=3), Reply("many words " * 20, stall_after=3)])
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.15, stop.set)
    await ask(model, stop)
    task = asyncio.create_task(ask(model))
    await asyncio.sleep(0.15)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [(row.outcome, row.estimated, row.tokens[1] > 0) for row in booked()] == [("cancelled", True, True)] * 2


async def test_what_is_given_up_before_it_is_answered_costs_what_the_vendor_was_sent(model, vendor):
    embedder = ResolvedModel("embedding", "openai_compatible", "e", vendor.url)
    reranker = ResolvedModel("rerank", "openai_compatible", "r", vendor.url)
    vendor.otherwise = lambda request: Reply("late", delay=60)
    calls = [
        ask(model),
        gateway.chat(model, QUESTION),
        gateway.embed(embedder, ["one two three"], purpose="query"),
        gateway.rerank(reranker, "one", ["two three"]),
    ]
    stop = asyncio.Event()
    tasks = [asyncio.create_task(call) for call in [*calls, ask(model, stop)]]
    while len(vendor.requests) < len(tasks):
        await asyncio.sleep(0.01)
    stop.set()
    await tasks.pop()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [(row.outcome, row.estimated, row.tokens[0] > 0, row.tokens[1]) for row in booked()] == [
        ("cancelled", True, True, 0)
    ] * 5


async def test_a_key_that_cannot_be_read_sends_nothing_and_costs_nothing(model, vendor):
    lost = dataclasses.replace(model, key=Secret(token=b"\x01" + bytes(40)))
    for call in (ask(lost), gateway.chat(lost, QUESTION)):
        with pytest.raises(SecretUnreadable):
            await call
    assert [(row.outcome, row.tokens) for row in booked()] == [("failed", (0, 0, 0))] * 2
    assert not vendor.requests


async def test_a_call_that_fails_is_booked_once_and_costs_nothing(model, vendor):
    vendor.script([Reply(status=503, error="busy")] * 3 + [Reply(status=401, error="no")])
    with pytest.raises(gateway.ModelError):
        await ask(model)
    with pytest.raises(gateway.ModelError):
        await ask(model)
    assert [(row.outcome, row.tokens) for row in booked()] == [("failed", (0, 0, 0))] * 2


async def test_built_in_models_are_booked_and_free(caller):
    with charged_to(caller):
        await gateway.embed(BUILTIN["embedding"], ["How many days?"], purpose="query")
    (row,) = booked()
    assert (row.outcome, row.estimated) == ("ok", True)
    assert caller.tally.known_cost == 0


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (None, None),
        (Price(Decimal(2), Decimal(8)), Decimal("0.00036")),
        (Price(Decimal(2), Decimal(8), Decimal("0.5")), Decimal("0.00027")),
    ],
)
def test_the_cost(price, cost):
    assert cost_of(Usage(100, 20, 60), price) == cost


async def test_a_sum_without_a_price_is_not_known(model, vendor, caller):
    with charged_to(caller):
        await ask(model)
    assert caller.tally.known_cost is None


def test_rows_hold_the_price_of_that_time(acme, ann, vendor, django_assert_num_queries):
    prices = {"input": "2", "output": "8", "cached": "0.5", "currency": "CNY"}
    row = add_model(
        workspace=acme, kind="chat", name="m", base_url=vendor.url, actor=ann, configuration={"price": prices}
    )
    caller = Caller(acme.pk, ann.pk, conversation_id=uuid4(), turn_id=uuid4())
    model = from_row(row)
    for _ in range(3):
        ledger.book(_entry(caller, model))
    with django_assert_num_queries(1):
        assert ledger.flush() == 3
    stored = UsageRecord.objects.filter(workspace=acme)
    first = stored.first()
    assert (first.model, first.user_id, first.turn_id) == ("openai_compatible:m", ann.pk, caller.turn_id)
    assert (first.price_in, first.price_cached, first.currency) == (Decimal(2), Decimal("0.5"), "CNY")
    assert first.cost == Decimal("0.00027")
    ledger.erase_conversation(caller.conversation_id)
    assert not stored.exclude(conversation_id=None, turn_id=None).exists()
    assert stored.count() == 3
    acme.delete()
    assert not UsageRecord.objects.exists()


def _entry(caller, model):
    from datetime import UTC, datetime

    from apps.models.accounting import Entry

    used = Usage(100, 20, 60)
    return Entry(datetime.now(UTC), caller, model, "answer", used, 12, "ok", cost_of(used, model.price))


def test_a_database_that_is_away_loses_nothing(db, caller, monkeypatch):
    ledger.book(_entry(caller, BUILTIN["chat"]))
    insert = UsageRecord.objects.bulk_create
    monkeypatch.setattr(type(UsageRecord.objects), "bulk_create", _raising(OperationalError))
    assert ledger.flush() == 0
    monkeypatch.setattr(type(UsageRecord.objects), "bulk_create", lambda manager, rows: insert(rows))
    assert ledger.flush() == 1


def test_a_row_that_cannot_be_stored_does_not_block_the_others(db, caller, monkeypatch):
    ledger.book(_entry(caller, BUILTIN["chat"]))
    monkeypatch.setattr(type(UsageRecord.objects), "bulk_create", _raising(DataError))
    assert ledger.flush() == 0
    assert not booked()


def _raising(kind):
    def bulk_create(manager, rows):
        raise kind

    return bulk_create


async def test_a_turn_ends_with_one_statement_and_stop_writes_the_rest(caller, monkeypatch):
    sizes = []
    monkeypatch.setattr(UsageRecord.objects, "bulk_create", lambda rows: sizes.append(len(list(rows))), raising=False)
    service = ledger.Ledger()
    await service.start()
    for _ in range(4):
        ledger.book(_entry(caller, BUILTIN["chat"]))
    await ledger.flush_soon()
    ledger.book(_entry(caller, BUILTIN["chat"]))
    await service.stop()
    assert sizes == [4, 1]


def test_owners_see_their_workspaces_use_and_operators_all(client, acme, ann, bea, mal):
    ledger.book(_entry(Caller(acme.pk, bea.pk), BUILTIN["chat"]))
    ledger.flush()
    seen = [UsageRecord.objects.visible_to(user).count() for user in (ann, bea, mal)]
    assert seen == [1, 0, 0]
    client.force_login(User.objects.create_superuser("root@example.com", "correct horse battery"))
    page = client.get(reverse("admin:models_usagerecord_changelist"), {"q": "acme"}).content.decode()
    assert "builtin:extractive" in page
    assert client.get(reverse("admin:models_usagerecord_changelist"), {"q": str(bea.pk)}).status_code == 200
