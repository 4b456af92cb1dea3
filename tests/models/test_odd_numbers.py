"""Numbers that no vendor should send: nothing breaks, and nobody else's books suffer."""

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from apps.models import budget_services, budgets, calls, connections, gateway, ledger, quirks, reranking
from apps.models.accounting import Caller, Entry, charged_to, cost_of
from apps.models.chat import ChatRequest, Price, ResolvedModel, Usage
from apps.models.errors import retry_after
from apps.models.models import Spending, UsageRecord
from apps.models.wire.deltas import MOST_TOKENS, read_usage
from tests.vendor import Reply

QUESTION = ChatRequest([{"role": "user", "content": "How many days?"}], logprobs=5)
ODD = [json.loads(text) for text in ("1e999", "-1e999", "NaN", "9" * 400, "-5", '"12"', "[]", "{}", "null", "1e12")]
MODEL = ResolvedModel("chat", "openai_compatible", "m", "http://127.0.0.1:1/v1")


def answering(value):
    async def post(*args):
        return value

    return post


@pytest.mark.parametrize("number", ODD, ids=str)
async def test_an_odd_count_is_none(number, monkeypatch):
    assert read_usage({"prompt_tokens": number, "completion_tokens": number}) is None
    assert read_usage({"prompt_tokens": 7, "cached_tokens": number}) == Usage(7)
    top = {"token": "A", "logprob": number, "top_logprobs": [{"token": "B", "logprob": -1}]}
    choice = {"message": {"content": "A"}, "finish_reason": "stop", "logprobs": {"content": [top]}}
    usage = {"prompt_tokens": number, "completion_tokens": 3}
    monkeypatch.setattr(calls, "post", answering({"choices": [choice], "usage": usage}))
    reply = await gateway.chat(MODEL, QUESTION)
    assert reply.usage == Usage(0, 3)
    assert all(logprob == logprob for logprob in reply.top_logprobs.values())
    monkeypatch.setattr(
        reranking, "post", answering({"results": [{"index": 0, "score": 1}], "usage": {"total_tokens": number}})
    )
    assert await gateway.rerank(MODEL, "q", ["a"]) == [1]
    assert ledger._pending[-1].usage.estimated


@pytest.mark.parametrize("number", [one for one in ODD if one not in (-5, 1e12)], ids=str)
async def test_an_odd_score_is_refused(number, monkeypatch):
    monkeypatch.setattr(reranking, "post", answering({"results": [{"index": 0, "relevance_score": number}]}))
    with pytest.raises(gateway.BadRanking):
        await gateway.rerank(MODEL, "q", ["a"])


DATES = [
    *("Mon, 01 Jan 99999 00:00:00 GMT", "Mon, 01 Jan 2001 00:00:00 +99999999999999", "9" * 500, "²", "-1", "nan"),
    *("inf", "1e400", "Mon, 01 Jan 9999 00:00:00 -2359", "Fri Nov 31 10:00:00 2026", "\x00", "soon", "1 2"),
]


@pytest.mark.parametrize("value", DATES)
def test_an_odd_pause_is_none_or_too_long_to_wait_for(value):
    for name in ("retry-after", "retry-after-ms"):
        assert (wait := retry_after({name: value})) is None or wait >= 0
    assert retry_after({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}) > 10**9
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


def entry(caller, usage, price=None):
    return Entry(datetime.now(UTC), caller, MODEL, "answer", usage, 12, "ok", cost_of(usage, price))


@pytest.mark.django_db(transaction=True)
def test_a_bill_beyond_all_bounds_takes_no_others_with_it(acme, monkeypatch):
    mad = entry(Caller(acme.pk), Usage(10**15, 10**15), Price(Decimal(99_999), Decimal(99_999)))
    unstorable = entry(Caller(acme.pk), Usage(1))
    others = [entry(Caller(uuid4()), Usage(10, 2)) for _ in range(3)]
    row = ledger._row
    monkeypatch.setattr(ledger, "_row", lambda one: _broken(row(one)) if one is unstorable else row(one))
    for one in (others[0], mad, others[1], unstorable, others[2]):
        ledger.book(one)
    assert ledger.flush() == 4
    assert UsageRecord.objects.exclude(workspace=acme).count() == 3
    assert UsageRecord.objects.get(workspace=acme).cost == ledger.MOST_COST
    assert not ledger._pending


def _broken(row):
    row.kind = "x" * 50
    return row


@pytest.mark.django_db(transaction=True)
def test_budgets_go_on_whatever_a_vendor_says(acme, ann, vendor):
    quirks.forget()
    budget = budget_services.set_budget(workspace=acme, actor=ann, scope="workspace", amount=Decimal(10**6))
    budgets.forget()
    model = ResolvedModel("chat", "openai_compatible", "m", vendor.url)
    vendor.otherwise = lambda request: Reply("x", usage={"prompt_tokens": 10**30, "completion_tokens": 5})

    async def twice():
        with charged_to(Caller(acme.pk, ann.pk)):
            said = [(await gateway.chat(model, QUESTION)).text for _ in range(2)]
        await connections.close()
        return said

    assert asyncio.run(twice()) == ["x", "x"]
    row = Spending.objects.get(budget=budget)
    budgets._debts.append((row.pk, Decimal(10) ** 30))
    budgets.settle_debts()
    row.refresh_from_db()
    assert row.spent == budgets.MOST
    assert not budgets._debts
    assert MOST_TOKENS * 99_999 * 2 / 10**6 < ledger.MOST_COST  # no honest bill is cut
