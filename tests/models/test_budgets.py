"""Budgets stop calls before the money is gone, whoever makes them, and say so."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from apps.common.errors import InvalidInput, NotAllowed, NotFound
from apps.models import budget_services, budgets, connections, gateway, ledger, quirks
from apps.models.accounting import Caller, Entry, charged_to
from apps.models.chat import ChatRequest, Price, ResolvedModel, Usage
from apps.models.models import Budget, Spending, UsageRecord
from apps.widgets.services import create_widget
from apps.workspaces.models import User
from apps.workspaces.services import create_api_key
from tests.vendor import Reply

QUESTION = ChatRequest([{"role": "user", "content": "How many days?"}], purpose="answer")
EURO = Price(Decimal(1_000), Decimal(1_000_000), currency="EUR")  # one euro a token of answer


@pytest.fixture
def model(vendor):
    quirks.forget()
    return ResolvedModel("chat", "openai_compatible", "m", vendor.url, max_output=1_000, price=EURO)


@pytest.fixture
def limit(acme, ann):
    def limit(amount, **options):
        options = {"scope": "workspace", **options}
        budget = budget_services.set_budget(workspace=acme, actor=ann, amount=Decimal(amount), **options)
        budgets.forget()
        return budget

    return limit


def ask(caller, *calls):
    """Make calls one after the other, or several at once where one is a list; return what came of each."""

    async def one(model, request):
        try:
            return (await gateway.chat(model, request)).text
        except gateway.ModelError as error:
            return error

    async def all_of_them():
        try:
            with charged_to(caller):
                return [
                    await asyncio.gather(*(one(*each) for each in call)) if isinstance(call, list) else await one(*call)
                    for call in calls
                ]
        finally:
            await connections.close()

    return asyncio.run(all_of_them())


def spent(budget):
    budgets.settle_debts()
    return {row.subject: row.spent for row in Spending.objects.filter(budget=budget)}


@pytest.mark.django_db(transaction=True)
def test_a_call_that_does_not_fit_is_never_sent(model, vendor, acme, ann, limit):
    limit(400)
    vendor.otherwise = lambda request: Reply("yes", usage={"prompt_tokens": 90, "completion_tokens": 60})
    first, second = ask(Caller(acme.pk, ann.pk), (model, QUESTION), (model, QUESTION))
    assert first == "yes"
    assert isinstance(second, gateway.BudgetExhausted)
    assert "150 of 400 tokens" in second.message
    assert (second.code, second.status, second.retryable) == ("budget_exhausted", 429, False)
    assert len(vendor.requests) == 1
    assert vendor.requests[0].body["max_tokens"] < 400  # the answer was limited to what there was room for
    ledger.flush()
    assert [row.outcome for row in UsageRecord.objects.all()] == ["ok"]


@pytest.mark.django_db(transaction=True)
def test_calls_at_once_do_not_overspend_together(model, vendor, acme, ann, limit):
    budget = limit(1_400)
    vendor.otherwise = lambda request: Reply("yes", usage={"prompt_tokens": 10, "completion_tokens": 900}, delay=0.2)
    (answers,) = ask(Caller(acme.pk, ann.pk), [(model, QUESTION)] * 4)
    assert sorted(isinstance(answer, gateway.BudgetExhausted) for answer in answers) == [False, False, True, True]
    assert sum(request.body["max_tokens"] for request in vendor.requests) <= 1_400
    assert spent(budget) == {None: 1_820}  # this vendor wrote more than it was allowed to


@pytest.mark.django_db(transaction=True)
def test_what_a_call_did_not_use_comes_back(model, vendor, acme, ann, limit):
    budget = limit(2_000)
    vendor.script([Reply("ok", usage={"prompt_tokens": 10, "completion_tokens": 5}), Reply(status=401)], to="chat")
    answer, refused = ask(Caller(acme.pk, ann.pk), (model, QUESTION), (model, QUESTION))
    assert answer == "ok"
    assert isinstance(refused, gateway.ModelRefused)
    assert spent(budget) == {None: 15}


@pytest.mark.django_db(transaction=True)
def test_a_stopped_answer_counts_what_was_written(model, vendor, acme, ann, limit):
    budget = limit(5_000)
    vendor.script([Reply("many words " * 20, stall_after=10)])

    async def leave():
        with charged_to(Caller(acme.pk, ann.pk)):
            async for _delta in (stream := gateway.stream_chat(model, QUESTION)):
                break
            await stream.aclose()
        await connections.close()

    asyncio.run(leave())
    (amount,) = spent(budget).values()
    assert 0 < amount < 100


@pytest.mark.django_db(transaction=True)
def test_each_person_and_widget_has_a_budget_of_its_own(model, vendor, acme, ann, limit):
    people, widgets = limit(300, scope="user"), limit(300, scope="widget", period="day")
    vendor.otherwise = lambda request: Reply("yes", usage={"prompt_tokens": 200, "completion_tokens": 50})
    bob, widget = uuid4(), uuid4()
    callers = [Caller(acme.pk, ann.pk), Caller(acme.pk, bob), Caller(acme.pk, widget_id=widget)]
    for caller in callers:
        first, second = ask(caller, (model, QUESTION), (model, QUESTION))
        assert first == "yes"
        assert isinstance(second, gateway.BudgetExhausted)
    assert spent(people) == {ann.pk: 250, bob: 250}
    assert spent(widgets) == {widget: 250}
    assert ask(Caller(acme.pk), (model, QUESTION)) == ["yes"]  # work of nobody in particular


@pytest.mark.django_db(transaction=True)
def test_one_answer_has_a_budget_across_its_calls(model, vendor, acme, ann, limit):
    limit(600, scope="turn")
    vendor.otherwise = lambda request: Reply("yes", usage={"prompt_tokens": 300, "completion_tokens": 100})
    first, second = ask(Caller(acme.pk, ann.pk, turn_id=uuid4()), (model, QUESTION), (model, QUESTION))
    assert first == "yes"
    assert isinstance(second, gateway.BudgetExhausted)
    assert "one answer" in second.message
    assert ask(Caller(acme.pk, ann.pk, turn_id=uuid4()), (model, QUESTION)) == ["yes"]  # another turn
    assert ask(Caller(acme.pk, ann.pk), (model, QUESTION)) == ["yes"]  # no turn: reading a document
    assert not Spending.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_calls_of_one_answer_at_once_do_not_overspend_it_together(model, vendor, acme, ann, limit):
    whole = limit(1_000_000)  # asking for it gives the calls time to overtake each other
    limit(1_400, scope="turn")
    vendor.otherwise = lambda request: Reply("yes", usage={"prompt_tokens": 10, "completion_tokens": 900}, delay=0.2)
    (answers,) = ask(Caller(acme.pk, ann.pk, turn_id=uuid4()), [(model, QUESTION)] * 4)
    assert sorted(isinstance(answer, gateway.BudgetExhausted) for answer in answers) == [False, False, True, True]
    assert sum(request.body["max_tokens"] for request in vendor.requests) <= 1_400
    assert spent(whole) == {None: 1_820}


@pytest.mark.django_db(transaction=True)
def test_two_budgets_of_one_answer_count_a_call_once(model, vendor, acme, ann, limit):
    limit(1_000, scope="turn")
    root = User.objects.create_superuser("root@example.com", "correct horse battery")
    budget_services.set_budget(workspace=acme, actor=root, scope="turn", amount=Decimal(1_000), by_operator=True)
    vendor.otherwise = lambda request: Reply("yes", usage={"prompt_tokens": 100, "completion_tokens": 300})
    assert ask(Caller(acme.pk, ann.pk, turn_id=uuid4()), (model, QUESTION), (model, QUESTION)) == ["yes", "yes"]


@pytest.mark.django_db(transaction=True)
def test_under_a_budget_every_answer_has_the_limit_that_was_held_for_it(model, vendor, acme, ann, limit):
    ask(Caller(acme.pk, ann.pk), (model, QUESTION))
    limit(1_000_000)
    ask(Caller(acme.pk, ann.pk), (model, QUESTION))
    assert [request.body.get("max_tokens") for request in vendor.requests] == [None, model.max_output]


@pytest.mark.django_db(transaction=True)
def test_money_is_counted_in_its_currency(model, vendor, acme, ann, limit):
    budget = limit(300, unit="EUR")
    vendor.otherwise = lambda request: Reply("yes", usage={"prompt_tokens": 10, "completion_tokens": 100})
    first, second = ask(Caller(acme.pk, ann.pk), (model, QUESTION), (model, QUESTION))
    assert first == "yes"
    assert "100.01 of 300.00 EUR" in second.message
    assert spent(budget) == {None: Decimal("100.01")}
    unpriced = ResolvedModel("chat", "openai_compatible", "other", vendor.url)
    (refused,) = ask(Caller(acme.pk, ann.pk), (unpriced, QUESTION))
    assert isinstance(refused, gateway.BudgetNeedsPrice)
    assert len(vendor.requests) == 1


@pytest.mark.django_db(transaction=True)
def test_vectors_and_scores_ask_too(vendor, acme, ann, limit):
    limit(0)
    embedder = ResolvedModel("embedding", "openai_compatible", "e", vendor.url)
    reranker = ResolvedModel("rerank", "openai_compatible", "r", vendor.url)
    hearer = ResolvedModel("speech", "openai_compatible", "s", vendor.url)
    with charged_to(Caller(acme.pk, ann.pk)):
        for call in (
            lambda: gateway.embed_now(embedder, ["one"], purpose="passage"),
            lambda: asyncio.run(gateway.rerank(reranker, "q", ["a"])),
            lambda: gateway.transcribe_now(hearer, b"x" * 9_000, file_name="a.wav"),
            lambda: gateway.describe_now(hearer, b"x", media_type="image/png", prompt="?"),
        ):
            with pytest.raises(gateway.BudgetExhausted):
                call()
    assert not vendor.requests


@pytest.mark.django_db(transaction=True)
def test_the_built_in_models_cost_nothing_and_are_never_refused(acme, ann, limit):
    limit(0)
    with charged_to(Caller(acme.pk, ann.pk)):
        model = gateway.resolve("embedding", workspace_id=acme.pk)
        assert len(gateway.embed_now(model, ["one"], purpose="query")) == 1


def test_what_was_spent_before_counts(acme, ann, limit, model):
    for at, person in (
        (datetime.now(UTC), ann.pk),
        (datetime(2020, 1, 1, tzinfo=UTC), ann.pk),
        (datetime.now(UTC), None),
    ):
        ledger.book(Entry(at, Caller(acme.pk, person), model, "answer", Usage(100, 20), 5, "ok", Decimal(2)))
    ledger.flush()
    limit(240)
    with pytest.raises(gateway.BudgetExhausted) as caught:
        budgets.check_now(Caller(acme.pk, ann.pk))
    assert "240 of 240 tokens" in caught.value.message
    limit(1_000)
    budgets.check_now(Caller(acme.pk, ann.pk))
    limit(2, unit="EUR", scope="user")
    with pytest.raises(gateway.BudgetExhausted) as caught:
        budgets.check_now(Caller(acme.pk, ann.pk))
    assert "2.00 of 2.00 EUR" in caught.value.message


def test_a_changed_budget_counts_at_once_and_a_removed_one_no_more(acme, ann, limit):
    budget = limit(0)
    with pytest.raises(gateway.BudgetExhausted):
        budgets.check_now(Caller(acme.pk))
    assert limit(10).pk == budget.pk
    budgets.check_now(Caller(acme.pk))
    limit(0)
    budget_services.remove_budget(budget=budget, actor=ann)
    budgets.check_now(Caller(acme.pk))


def test_who_may_set_budgets(acme, ann, bea, mal, limit):
    for person, error in ((bea, NotAllowed), (mal, NotFound)):
        with pytest.raises(error):
            budget_services.set_budget(workspace=acme, actor=person, scope="workspace", amount=Decimal(1))
        with pytest.raises(NotFound):
            budget_services.remove_budget(budget=limit(5), actor=person)
    with pytest.raises(NotFound):
        limit(5, by_operator=True)
    root = User.objects.create_superuser("root@example.com", "correct horse battery")
    theirs = budget_services.set_budget(
        workspace=acme, actor=root, scope="workspace", amount=Decimal(7), by_operator=True
    )
    with pytest.raises(NotFound):
        budget_services.remove_budget(budget=theirs, actor=ann)
    assert set(Budget.objects.visible_to(ann).values_list("amount", flat=True)) == {5, 7}
    assert not Budget.objects.visible_to(bea).exists()


def test_a_budget_is_for_somebody_of_the_workspace(acme, ann, bea, mal):
    theirs, own = mal.workspaces.get(), create_widget(workspace=acme, actor=ann, name="Shop")
    foreign = create_widget(workspace=theirs, actor=mal, name="Shop")
    key, _secret = create_api_key(workspace=acme, name="k", scopes=["knowledge:read"], actor=ann)
    refused = [("user", mal), ("user", own), ("user", key), ("widget", foreign), ("widget", bea), ("widget", key)]
    refused += [("workspace", bea), ("workspace", acme), ("workspace", theirs), ("turn", own)]
    for scope, subject in refused:
        with pytest.raises(InvalidInput):
            budget_services.set_budget(workspace=acme, actor=ann, scope=scope, amount=Decimal(1), subject=subject.pk)
    assert not Budget.objects.exists()
    for scope, subject in (("user", bea), ("widget", own)):
        budget_services.set_budget(workspace=acme, actor=ann, scope=scope, amount=Decimal(1), subject=subject.pk)
    assert Budget.objects.count() == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": -1},
        {"amount": "NaN"},
        {"amount": 10**15},
        {"unit": "euro"},
        {"scope": "world"},
        {"period": "century"},
        {"scope": "user", "subject": uuid4()},
        {"scope": "workspace", "subject": uuid4()},
    ],
)
def test_a_budget_that_cannot_be_is_refused(limit, wrong):
    with pytest.raises(InvalidInput):
        limit(**{"amount": 1, "scope": "workspace", **wrong})


def test_how_far_budgets_are_spent(acme, ann, limit, model):
    ledger.book(Entry(datetime.now(UTC), Caller(acme.pk, ann.pk), model, "answer", Usage(60, 20), 5, "ok", None))
    ledger.flush()
    whole, each, turn = limit(100), limit(80, scope="user", period="day"), limit(9, scope="turn")
    first, second, third = budget_services.statuses(acme, [whole, each, turn])
    assert [(one.spent, one.share) for one in first.spent] == [(80, 80)]
    assert second.spent == []
    with pytest.raises(gateway.BudgetExhausted):
        budgets.check_now(Caller(acme.pk, ann.pk))
    _first, second, third = budget_services.statuses(acme, [whole, each, turn])
    assert [(one.name, one.spent, one.share) for one in second.spent] == [("ann@example.com", 80, 100)]
    assert (third.spent, third.until) == ([], None)
    assert second.until > datetime.now(UTC).date()
