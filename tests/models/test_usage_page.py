"""The page of what was used: sums, chart, file, budgets."""

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.models import budgets, ledger, reports
from apps.models.accounting import Caller, Entry, cost_of
from apps.models.chat import Price, ResolvedModel, Usage
from apps.models.models import Budget
from apps.workspaces.models import User, Workspace

CNY = Price(Decimal(2), Decimal(8), currency="CNY")


@pytest.fixture
def page(client, acme, ann):
    client.force_login(ann)

    def page(**query):
        return client.get(reverse("models:show-usage", args=[acme.slug]), query).content.decode()

    return page


@pytest.fixture
def post(client, acme, ann):
    client.force_login(ann)

    def post(route, *args, **data):
        return client.post(reverse(f"models:{route}", args=[acme.slug, *args]), data, follow=True)

    return post


def use(workspace, name="m", price=None, outcome="ok", usage=None, **more):
    usage = usage or Usage(1_000, 200, 400)
    model = ResolvedModel(more.get("kind", "chat"), "openai_compatible", name, price=price)
    caller = Caller(workspace.pk, more.get("user"), turn_id=more.get("turn"))
    at = datetime.now(UTC) - timedelta(days=more.get("days_ago", 0))
    ledger.book(Entry(at, caller, model, more.get("purpose", "answer"), usage, 40, outcome, cost_of(usage, price)))
    ledger.flush()


def test_the_page_sums_up_by_model_person_and_day(page, acme, ann, mal):
    assert "Nothing used yet" in page()
    turn = uuid4()
    use(acme, "priced", CNY, user=ann.pk, turn=turn)
    use(acme, "priced", CNY, outcome="failed", user=ann.pk, turn=turn)
    use(acme, "unpriced", user=ann.pk)
    use(acme, "vectors", CNY, purpose="passage", usage=Usage(500))
    use(Workspace.objects.exclude(pk=acme.pk).get(), "of-others")
    shown = page()
    assert "0.0072 CNY" in shown  # two calls of the priced model
    assert "0.0082 CNY" in shown  # of the day, vectors too, and so a question
    assert "1 failed" in shown
    assert "1 call has no known price" in shown
    assert "ann@example.com" in shown
    assert "Visitors and background work" in shown
    assert "of-others" not in shown
    assert shown.count('<rect class="hit"') == 30
    assert shown.count('<rect class="s1"') == 1
    assert shown.count('<rect class="s3"') == 1
    assert page(unit="tokens").count("4.1 k") > 0


@pytest.mark.parametrize(("days", "columns"), [("7", 7), ("90", 90), ("365", 53), ("nonsense", 30)])
def test_a_time_is_chosen(page, acme, days, columns):
    use(acme, "old", days_ago=40)
    use(acme, "new", days_ago=2)
    shown = page(days=days)
    assert shown.count('<rect class="hit"') in (columns, columns + 1)
    assert ("old" in reports.report(_records(acme), days=int(days) if days.isdigit() else 30).models[-1]["model"]) == (
        days in ("90", "365")
    )


def _records(workspace):
    from apps.models.models import UsageRecord

    return UsageRecord.objects.filter(workspace=workspace)


def test_the_page_asks_the_database_a_fixed_number_of_times(page, acme, ann, django_assert_max_num_queries):
    for number in range(12):
        use(acme, f"m-{number}", CNY, user=ann.pk, turn=uuid4(), days_ago=number)
        Budget.objects.create(workspace=acme, amount=number, unit="CNY", scope="turn", subject=uuid4())
    with django_assert_max_num_queries(20):
        page()


def test_currencies_are_never_added_up(page, acme):
    use(acme, "m", CNY)
    use(acme, "m", Price(Decimal(4), currency="USD"))
    shown = page()
    assert "0.0036 CNY" in shown
    assert "0.0040 USD" in shown
    assert page(unit="USD").count("0.0040") > 0


@pytest.mark.parametrize(
    ("most", "top"), [("0", "0"), ("1", "1.2"), ("1.3", "1.5"), ("2.9", "3"), ("0.031", "0.06"), ("99000", "120000")]
)
def test_the_scale_ends_at_a_round_number(most, top):
    assert reports._round_up(Decimal(most)) == Decimal(top)


def test_the_file_holds_the_same_and_no_formulas(client, acme, ann):
    use(acme, '=HYPERLINK("x")', Price(Decimal(2), currency="USD"))
    use(acme, "old", days_ago=40)
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


def test_budgets_are_set_shown_and_removed(post, page, acme, ann):
    use(acme, usage=Usage(700, 100))
    shown = post("set-budget", scope="workspace", amount="1000", unit="tokens", period="month").content.decode()
    assert "1,000 tokens a month" in shown
    assert "800 tokens" in shown
    assert 'value="80"' in shown
    post("set-budget", scope="user", amount="2.5", unit="CNY", period="day", subject=str(ann.pk))
    post("set-budget", scope="turn", amount="5000", unit="tokens", period="month", subject=str(ann.pk))
    shown = page()
    assert "2.50 CNY a day" in shown
    assert "5,000 tokens each" in shown
    assert Budget.objects.get(scope="turn").subject is None
    post("remove-budget", Budget.objects.get(scope="workspace").pk)
    assert Budget.objects.count() == 2


@pytest.mark.parametrize("wrong", [{"amount": "-1"}, {"amount": ""}, {"unit": "shells"}, {"subject": str(uuid4())}])
def test_a_budget_that_cannot_be_comes_back_with_the_form(post, wrong):
    values = {"scope": "user", "amount": "5", "unit": "tokens", "period": "day", **wrong}
    assert post("set-budget", **values).status_code == 422
    assert not Budget.objects.exists()


def test_the_operators_budget_is_shown_and_stays(post, page, acme, client):
    budget = Budget.objects.create(workspace=acme, amount=10, by_operator=True)
    budgets.forget()
    assert "the operator" in page()
    assert post("remove-budget", budget.pk).status_code == 404


def test_operators_see_all_workspaces_and_set_budgets(client, acme, ann, mal):
    use(acme, "m", CNY)
    client.force_login(User.objects.create_superuser("root@example.com", "correct horse battery"))
    shown = client.get(reverse("admin:models_usagerecord_by_workspace")).content.decode()
    assert "acme" in shown
    assert "0.0036" in shown
    answer = client.post(
        reverse("admin:models_budget_add"),
        {"workspace": acme.pk, "scope": "workspace", "amount": "12", "unit": "CNY", "period": "month"},
    )
    assert answer.status_code == 302
    budget = Budget.objects.get()
    assert (budget.workspace, budget.by_operator, budget.amount) == (acme, True, 12)
    client.post(reverse("admin:models_budget_delete", args=[budget.pk]), {"post": "yes"})
    assert not Budget.objects.exists()


def test_the_page_says_how_much_of_the_prompts_repeats_and_where_it_breaks(page, acme, ann):
    from apps.conversations.models import Conversation, Turn

    conversation = Conversation.objects.create(workspace=acme, owner=ann)
    requests = [
        {"bytes": 1_000, "reused": 0, "break": ""},
        {"bytes": 2_000, "reused": 1_000, "break": ""},
        {"bytes": 3_000, "reused": 1_400, "break": "turn_border"},
    ]
    for number, usage in enumerate(({"requests": requests}, {}), start=1):
        Turn.objects.create(
            conversation=conversation, number=number, client_id=uuid4().hex, question="?", usage=usage,
            status=Turn.Status.SUCCEEDED,
        )  # fmt: skip
    use(acme)
    shown = page()
    assert "40 % of the prompts repeat the request before" in shown
    assert "A new question" in shown
    assert "Elsewhere" not in shown
