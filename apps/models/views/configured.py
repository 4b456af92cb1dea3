"""Pages of models, for those who own or administer a workspace."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.common.errors import InvalidInput, NotAllowed, NotFound
from apps.common.fields import MASK, SecretUnreadable
from apps.models import discovery, jobs, reports, services
from apps.models.errors import ModelError, ModelInUse
from apps.models.forms import AddModelForm, ListModelsForm, ModelSettingsForm
from apps.models.models import ModelConfig, UsageRecord
from apps.models.querysets import ModelConfigQuerySet
from apps.models.users import uses_of, uses_of_each
from apps.workspaces.pages import PersonRequest, enter


def _enter(request: PersonRequest, slug: str) -> dict[str, Any]:
    return {**enter(request, slug, act="add_model"), "section": "models"}


def _own(request: PersonRequest, frame: dict[str, Any], model_id: UUID) -> ModelConfig:
    mine = ModelConfig.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return get_object_or_404(mine.select_related("fallback"), pk=model_id)


def _list(request: PersonRequest, frame: dict[str, Any], form: AddModelForm, status: int = 200) -> HttpResponse:
    workspace = frame["workspace"]
    usable = ModelConfig.objects.visible_to(request.user).usable_in(workspace.pk)
    models = list(usable.select_related("fallback").own_first())
    calls = UsageRecord.objects.visible_to(request.user).filter(workspace=workspace).since(reports.first_day())
    uses = uses_of_each([model for model in models if model.workspace_id], request.user)
    context = {
        "rows": [(model, uses.get(model.pk, [])) for model in models],
        "jobs": jobs.jobs_of(models, calls.by_model()),
        "form": form,
    }
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
    try:
        model = services.add_model(workspace=frame["workspace"], actor=request.user, **form.cleaned_data)
    except InvalidInput as error:
        form.add_error(None, error.message)
        return _list(request, frame, form, status=422)
    words = _("“%(name)s” was added for: %(kind)s. Test it before others use it.")
    messages.success(request, words % {"name": model.name, "kind": model.get_kind_display()})
    return redirect("models:show-model", slug, model.pk)


@require_POST
@login_required
def list_offered(request: PersonRequest, slug: str) -> HttpResponse:
    """Ask a vendor, with the key that was just entered, which models it has."""
    frame = _enter(request, slug)
    form = ListModelsForm(request.POST)
    context: dict[str, Any] = {"offered": [], "failed": ""}
    if form.is_valid():
        values = form.cleaned_data
        context["offered"] = discovery.documented(values["provider"])
        try:
            context["offered"] = discovery.list_models(
                values["provider"], base_url=values["base_url"], key=values["api_key"]
            )
        except (ModelError, InvalidInput) as error:
            context["failed"] = error.message
    return render(request, "models/partials/_offered.html", {**frame, **context})


@require_safe
@login_required
def find_ollama(request: PersonRequest, slug: str) -> HttpResponse:
    """Offer the models of the Ollama on this machine, to those who run the server."""
    frame = _enter(request, slug)
    found = discovery.ollama_models() if request.user.is_staff else None
    used = set(ModelConfig.objects.visible_to(request.user).filter(workspace=None).values_list("provider", "name"))
    offered = [(name, kind) for name, kind in found or () if ("ollama", name) not in used]
    return render(request, "models/partials/_ollama.html", {**frame, "offered": offered, "found": found})


@require_POST
@login_required
def add_ollama(request: PersonRequest, slug: str) -> HttpResponse:
    """Add models of the Ollama on this machine for all workspaces."""
    _enter(request, slug)
    if not request.user.is_staff:
        raise NotAllowed
    made = services.add_ollama_models(names=request.POST.getlist("name"), actor=request.user)
    messages.success(request, _("Added: %(names)s.") % {"names": ", ".join(model.name for model in made) or "–"})
    return redirect("models:list-models", slug)


@require_safe
@login_required
def show_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Show everything of a model: settings, what the last test found, who uses it."""
    frame = _enter(request, slug)
    model = _own(request, frame, model_id)
    return _show(request, frame, model, ModelSettingsForm(model=model, others=_others(request, frame, model)))


def _others(request: PersonRequest, frame: dict[str, Any], model: ModelConfig) -> ModelConfigQuerySet:
    """Return the models that may stand in for one."""
    usable = ModelConfig.objects.visible_to(request.user).usable_in(frame["workspace"].pk)
    return usable.filter(kind=model.kind, enabled=True).exclude(pk=model.pk).own_first()


def _key_state(model: ModelConfig) -> str:
    """Return what is said of a key instead of showing it: its mask, nothing where there is none, or "lost"."""
    if model.api_key is None:
        return ""
    try:
        model.api_key.reveal()
    except SecretUnreadable:
        return "lost"
    return MASK


def _show(
    request: PersonRequest, frame: dict[str, Any], model: ModelConfig, form: ModelSettingsForm, status: int = 200
) -> HttpResponse:
    context = {"model": model, "form": form, "uses": uses_of(model, request.user), "key": _key_state(model)}
    return render(request, "models/show_model.html", {**frame, **context}, status=status)


@require_POST
@login_required
def change_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Change a model; values that cannot be right come back with 422."""
    frame = _enter(request, slug)
    model = _own(request, frame, model_id)
    form = ModelSettingsForm(request.POST, model=model, others=_others(request, frame, model))
    if form.is_valid():
        try:
            services.change_model(model=model, actor=request.user, **form.changes())
        except InvalidInput as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, _("“%(name)s” was changed.") % {"name": model.name})
            return redirect("models:show-model", slug, model.pk)
    stored = _own(request, frame, model_id)  # the title and the test are those of what is stored
    return _show(request, frame, stored, form, status=422)


@require_POST
@login_required
def test_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Call a model as real work would, and say how it went."""
    frame = _enter(request, slug)
    model = _own(request, frame, model_id)
    services.test_model(model=model, actor=request.user)
    if request.htmx:
        return render(request, "models/partials/_test.html", {**frame, "model": model})
    return redirect("models:show-model", slug, model.pk)


@require_POST
@login_required
def choose_model(request: PersonRequest, slug: str) -> HttpResponse:
    """Let a model do a job, or leave the job to who does it without a choice."""
    frame = _enter(request, slug)
    work = jobs.WORK.get(request.POST.get("work", ""))
    if work is None:
        raise NotFound
    chosen = request.POST.get("model", "")
    model = None
    if chosen:
        mine = ModelConfig.objects.editable_by(request.user).filter(workspace=frame["workspace"], kind=work.kind)
        model = next((row for row in mine if str(row.pk) == chosen), None)
        if model is None:
            raise NotFound
    services.choose_model(workspace=frame["workspace"], actor=request.user, kind=work.kind, model=model, fast=work.fast)
    messages.success(request, _("%(job)s: saved.") % {"job": work.name})
    return redirect("models:list-models", slug)


@require_POST
@login_required
def switch_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Switch a model off, or on again."""
    model = _own(request, _enter(request, slug), model_id)
    services.change_model(model=model, actor=request.user, enabled=not model.enabled)
    return redirect("models:show-model", slug, model.pk)


@require_POST
@login_required
def delete_model(request: PersonRequest, slug: str, model_id: UUID) -> HttpResponse:
    """Delete a model, or say what still uses it."""
    model = _own(request, _enter(request, slug), model_id)
    try:
        services.delete_model(model=model, actor=request.user)
    except ModelInUse as error:
        messages.error(request, error.message)
        return redirect("models:show-model", slug, model.pk)
    messages.success(request, _("“%(name)s” was deleted.") % {"name": model.name})
    return redirect("models:list-models", slug)
