"""Pages of what models were used for and cost, and of budgets, for those who own or administer a workspace."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.models import budget_services, repeats, reports
from apps.models.forms import BudgetForm
from apps.models.models import Budget, UsageRecord
from apps.workspaces.pages import PersonRequest, enter


def _enter(request: PersonRequest, slug: str) -> dict[str, Any]:
    return {**enter(request, slug, act="set_budget"), "section": "usage"}


def _days(request: PersonRequest) -> int:
    wanted = request.GET.get("days", "")
    return next((days for days in reports.PERIODS if str(days) == wanted), reports.DAYS)


def _people(frame: dict[str, Any]) -> dict[UUID, str]:
    return dict(frame["workspace"].memberships.order_by("user__email").values_list("user_id", "user__email"))


def _form(people: Mapping[UUID, str], data: Any = None) -> BudgetForm:
    return BudgetForm(data, people=[(str(user), email) for user, email in people.items()])


def _show(
    request: PersonRequest, frame: dict[str, Any], people: Mapping[UUID, str], form: BudgetForm, status: int = 200
) -> HttpResponse:
    workspace, days = frame["workspace"], _days(request)
    records = UsageRecord.objects.visible_to(request.user).filter(workspace=workspace)
    budgets = Budget.objects.visible_to(request.user).filter(workspace=workspace).order_by("created_at")
    context = {
        "report": reports.report(records, days=days, unit=request.GET.get("unit", "")),
        "budgets": budget_services.statuses(workspace, list(budgets), people=people),
        "repeats": repeats.count(workspace, days=days),
        "form": form,
        "days": days,
        "periods": reports.PERIODS,
    }
    return render(request, "models/show_usage.html", {**frame, **context}, status=status)


@require_safe
@login_required
def show_usage(request: PersonRequest, slug: str) -> HttpResponse:
    """Show what the workspace used: by time, by model, by person, and how far its budgets are spent."""
    frame = _enter(request, slug)
    people = _people(frame)
    return _show(request, frame, people, _form(people))


@require_safe
@login_required
def export_usage(request: PersonRequest, slug: str) -> HttpResponse:
    """Return the same by day and model as a file for spreadsheets."""
    frame = _enter(request, slug)
    records = UsageRecord.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    response = HttpResponse(reports.as_csv(records, days=_days(request)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="usage-{frame["workspace"].slug}.csv"'
    return response


@require_POST
@login_required
def set_budget(request: PersonRequest, slug: str) -> HttpResponse:
    """Set a budget; a form that does not fit comes back with 422."""
    frame = _enter(request, slug)
    people = _people(frame)
    form = _form(people, request.POST)
    if not form.is_valid():
        return _show(request, frame, people, form, status=422)
    values = {**form.cleaned_data}
    subject = values.pop("subject")
    budget_services.set_budget(
        workspace=frame["workspace"], actor=request.user, subject=UUID(subject) if subject else None, **values
    )
    messages.success(request, _("The budget holds from now on."))
    return redirect("models:show-usage", slug)


@require_POST
@login_required
def remove_budget(request: PersonRequest, slug: str, budget_id: UUID) -> HttpResponse:
    """Remove a budget of the workspace; the operator's stay."""
    frame = _enter(request, slug)
    budget = get_object_or_404(Budget.objects.editable_by(request.user), workspace=frame["workspace"], pk=budget_id)
    budget_services.remove_budget(budget=budget, actor=request.user)
    messages.success(request, _("The budget was removed."))
    return redirect("models:show-usage", slug)
