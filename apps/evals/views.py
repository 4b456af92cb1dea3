"""Pages of data sets: the list, and one set with its cases. With whom one is shared: workspaces.views.sharing."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.evals import keeping
from apps.evals.errors import DatasetNameTaken
from apps.evals.forms import CaseForm, DatasetForm
from apps.evals.models import Case, Dataset
from apps.knowledge.models import Document, KnowledgeBase
from apps.models.decision import INTENTS
from apps.workspaces import permissions
from apps.workspaces.pages import PersonRequest, enter

ROWS = 50
OFFERED = 200  # documents of a base, the newest, that a case can name


@require_safe
@login_required
def list_datasets(request: PersonRequest, slug: str) -> HttpResponse:
    """List the data sets that one may use, with how many cases each has."""
    return _list(request, enter(request, slug))


@require_POST
@login_required
def create_dataset(request: PersonRequest, slug: str) -> HttpResponse:
    """Make a data set and lead to it; a form that does not fit comes back with 422."""
    frame = enter(request, slug, act="create_dataset")
    form = DatasetForm(request.POST, bases=_bases(request, frame))
    if form.is_valid():
        try:
            made = keeping.create_dataset(workspace=frame["workspace"], actor=request.user, **form.cleaned_data)
        except DatasetNameTaken as error:
            form.add_error("name", error.message)
        else:
            return redirect("evals:show-dataset", slug, made.pk)
    return _list(request, frame, form, status=422)


@require_safe
@login_required
def show_dataset(request: PersonRequest, slug: str, dataset_id: UUID) -> HttpResponse:
    """Show a data set's cases, and to those who may change it a form for another."""
    frame = enter(request, slug)
    mine = Dataset.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    return _show(request, frame, get_object_or_404(mine.select_related("knowledge_base"), pk=dataset_id))


@require_POST
@login_required
def rename_dataset(request: PersonRequest, slug: str, dataset_id: UUID) -> HttpResponse:
    """Give a data set another name."""
    _frame, dataset = _own(request, slug, dataset_id)
    keeping.rename_dataset(dataset=dataset, name=request.POST.get("name", ""), actor=request.user)
    messages.success(request, _("Saved."))
    return redirect("evals:show-dataset", slug, dataset.pk)


@require_POST
@login_required
def delete_dataset(request: PersonRequest, slug: str, dataset_id: UUID) -> HttpResponse:
    """Delete a data set with its cases."""
    _frame, dataset = _own(request, slug, dataset_id)
    keeping.delete_dataset(dataset=dataset, actor=request.user)
    messages.success(request, _("“%(name)s” was deleted.") % {"name": dataset.name})
    return redirect("evals:list-datasets", slug)


@require_POST
@login_required
def add_case(request: PersonRequest, slug: str, dataset_id: UUID) -> HttpResponse:
    """Add a case; a form that does not fit comes back with 422."""
    frame, dataset = _own(request, slug, dataset_id)
    form = _case_form(request, dataset, request.POST)
    if not form.is_valid():
        return _show(request, frame, dataset, form, status=422)
    given = form.cleaned_data
    documents = [UUID(one) for one in given.pop("documents", [])]
    keeping.add_case(dataset=dataset, actor=request.user, documents=documents, **given)
    return redirect("evals:show-dataset", slug, dataset.pk)


@require_POST
@login_required
def delete_case(request: PersonRequest, slug: str, case_id: UUID) -> HttpResponse:
    """Delete a case."""
    frame = enter(request, slug)
    cases = Case.objects.editable_by(request.user).filter(dataset__workspace=frame["workspace"])
    case = get_object_or_404(cases.select_related("dataset"), pk=case_id)
    keeping.delete_case(case=case, actor=request.user)
    return redirect("evals:show-dataset", slug, case.dataset_id)


def _own(request: PersonRequest, slug: str, dataset_id: UUID) -> tuple[dict[str, Any], Dataset]:
    frame = enter(request, slug)
    mine = Dataset.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return frame, get_object_or_404(mine.select_related("knowledge_base"), pk=dataset_id)


def _bases(request: PersonRequest, frame: dict[str, Any]) -> Any:
    return KnowledgeBase.objects.visible_to(request.user).filter(workspace=frame["workspace"]).order_by("name")


def _list(
    request: PersonRequest, frame: dict[str, Any], form: DatasetForm | None = None, status: int = 200
) -> HttpResponse:
    mine = Dataset.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    page = Paginator(mine.annotate(case_count=Count("cases")).order_by("name"), ROWS)
    context: dict[str, Any] = {"page": page.get_page(request.GET.get("page")), "section": "knowledge"}
    if permissions.allows("create_dataset", frame["role"]):
        context["form"] = form or DatasetForm(bases=_bases(request, frame))
    return render(request, "evals/list_datasets.html", {**frame, **context}, status=status)


def _case_form(request: PersonRequest, dataset: Dataset, data: Any = None) -> CaseForm:
    inside = Document.objects.visible_to(request.user).filter(knowledge_base=dataset.knowledge_base_id)
    offered = list(inside.order_by("-created_at")[:OFFERED]) if dataset.kind == Dataset.Kind.RETRIEVAL else []
    return CaseForm(data, dataset=dataset, intents=list(INTENTS), documents=offered)


def _show(
    request: PersonRequest, frame: dict[str, Any], dataset: Dataset, form: CaseForm | None = None, status: int = 200
) -> HttpResponse:
    cases = Case.objects.visible_to(request.user).filter(dataset=dataset).order_by("-created_at", "pk")
    page = Paginator(cases, ROWS).get_page(request.GET.get("page"))
    named = {one for case in page for one in case.documents}
    readable = Document.objects.visible_to(request.user).filter(pk__in=named)
    names = dict(readable.values_list("pk", "name")) if named else {}
    context = {
        "dataset": dataset,
        "page": page,
        "rows": [(case, [names[one] for one in case.documents if one in names]) for case in page],
        "section": "knowledge",
    }
    if Dataset.objects.editable_by(request.user).filter(pk=dataset.pk).exists():
        context["form"] = form or _case_form(request, dataset)
    return render(request, "evals/show_dataset.html", {**frame, **context}, status=status)
