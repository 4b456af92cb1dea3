"""Pages of models and their use, for those who own or administer a workspace."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.models import jobs, reports, services
from apps.models.errors import ModelInUse
from apps.models.forms import AddModelForm
from apps.models.models import ModelConfig, UsageRecord
from apps.models.users import uses_of
from apps.workspaces import permissions
from apps.workspaces.pages import PersonRequest, enter


def _enter(request: PersonRequest, slug: str) -> dict[str, Any]:
    frame = enter(request, slug)
    permissions.require("add_model", actor=request.user, workspace=frame["workspace"])
    return {**frame, "section": "models"}


def _own(request: PersonRequest, frame: dict[str, Any], model_id: UUID) -> ModelConfig:
    mine = ModelConfig.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return get_object_or_404(mine.select_related("fallback"), pk=model_id)


def _list(request: PersonRequest, frame: dict[str, Any], form: AddModelForm, status: int = 200) -> HttpResponse:
    models = ModelConfig.objects.visible_to(request.user).usable_in(frame["workspace"].pk).own_first()
    rows = [(model, uses_of(model, request.user) if model.workspace_id else []) for model in models]
    context = {"rows": rows, "jobs": jobs.jobs_of(frame["workspace"].pk), "form": form}
    return render(request, "models/list_models.html", {**frame, **context}, status=status)


@require_safe
@login_required
def list_models(request: PersonRequest, slug: str) -> HttpResponse:
    """Show which model does which job, and the models that could."""
    return _list(request, _enter(request, slug), AddModelForm())


@require_POST
@login_required
def add_model(request: PersonRequest, slug: str) -> HttpResponse:
    """Add a model of the workspace; a form that does not fit comes back with 422."""
    frame = _enter(request, slug)
    form = AddModelForm(request.POST)
    if not form.is_valid():
        return _list(request, frame, form, status=422)
    model = services.add_model(workspace=frame["workspace"], actor=request.user, **form.cleaned_data)
    messages.success(request, _("“%(name)s” was added. Test it before others use it.") % {"name": model.name})
    return redirect("models:list-models", slug)


@require_POST
@login_required
def test_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Call a model as real work would, and say how it went."""
    model = _own(request, _enter(request, slug), model_id)
    trial = services.test_model(model=model, actor=request.user)
    if not trial.ok:
        messages.error(request, trial.error)
        return redirect("models:list-models", slug)
    words = _("“%(name)s” answered in %(ms)d ms.") % {"name": model.name, "ms": trial.ms}
    if trial.dimensions:
        words += " " + _("Its vectors have %(n)d numbers.") % {"n": trial.dimensions}
    if trial.capabilities:
        words += " " + _("It can: %(list)s.") % {"list": ", ".join(trial.capabilities)}
    messages.success(request, words)
    return redirect("models:list-models", slug)


@require_POST
@login_required
def choose_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Make a model the workspace's default of its kind, or no longer."""
    model = _own(request, _enter(request, slug), model_id)
    services.change_model(model=model, actor=request.user, is_default=not model.is_default)
    return redirect("models:list-models", slug)


@require_POST
@login_required
def switch_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Switch a model off, or on again."""
    model = _own(request, _enter(request, slug), model_id)
    services.change_model(model=model, actor=request.user, enabled=not model.enabled)
    return redirect("models:list-models", slug)


@require_POST
@login_required
def delete_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Delete a model, or say what still uses it."""
    model = _own(request, _enter(request, slug), model_id)
    try:
        services.delete_model(model=model, actor=request.user)
        messages.success(request, _("“%(name)s” was deleted.") % {"name": model.name})
    except ModelInUse as error:
        messages.error(request, error.message)
    return redirect("models:list-models", slug)


@require_safe
@login_required
def show_usage(request: PersonRequest, slug: str) -> HttpResponse:
    """Show what the workspace used in the last thirty days, by model and by day."""
    frame = {**_enter(request, slug), "section": "usage"}
    records = UsageRecord.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    report = reports.report(records.since(reports.first_day()))
    return render(request, "models/show_usage.html", {**frame, "report": report})


@require_safe
@login_required
def export_usage(request: PersonRequest, slug: str) -> HttpResponse:
    """Return the same by day and model as a file for spreadsheets."""
    frame = _enter(request, slug)
    records = UsageRecord.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    response = HttpResponse(reports.as_csv(records.since(reports.first_day())), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="usage-{frame["workspace"].slug}.csv"'
    return response
