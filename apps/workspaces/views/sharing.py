"""The page on which anything that can be shared is shared: bases, folders, documents, agents, models, data sets."""

from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.common.errors import NotFound
from apps.workspaces import services
from apps.workspaces.forms import ShareForm
from apps.workspaces.models import Department, Membership, Share
from apps.workspaces.pages import PersonRequest, enter
from apps.workspaces.services.sharing import levels_of, share_models, shared_kind


@require_safe
@login_required
def show_sharing(request: PersonRequest, slug: str, kind: str, row_id: UUID) -> HttpResponse:
    """Show with whom a thing is shared, to change it."""
    return render(request, "workspaces/show_sharing.html", _context(request, *_find(request, slug, kind, row_id)))


@require_POST
@login_required
def share(request: PersonRequest, slug: str, kind: str, row_id: UUID) -> HttpResponse:
    """Share a thing with a person, a department, or everybody."""
    frame, model, row = _find(request, slug, kind, row_id)
    form = _form(request, frame, row, request.POST)
    if not form.is_valid():
        context = _context(request, frame, model, row, form=form)
        return render(request, "workspaces/show_sharing.html", context, status=422)
    services.share(row=row, subject=form.subject_chosen(), level=form.cleaned_data["level"], actor=request.user)
    return redirect("workspaces:show-sharing", slug, kind, row_id)


@require_POST
@login_required
def unshare(request: PersonRequest, slug: str, kind: str, row_id: UUID, share_id: UUID) -> HttpResponse:
    """Withdraw a share."""
    _frame, model, row = _find(request, slug, kind, row_id)
    held = get_object_or_404(model.objects.editable_by(request.user).filter(content_object=row), pk=share_id)
    services.unshare(share=held, actor=request.user)
    messages.success(request, _("Withdrawn. It counts at once, also in answers that are being written."))
    return redirect("workspaces:show-sharing", slug, kind, row_id)


@require_POST
@login_required
def restrict(request: PersonRequest, slug: str, kind: str, row_id: UUID) -> HttpResponse:
    """Shut a thing to all but those it is shared with, or open it again."""
    _frame, _model, row = _find(request, slug, kind, row_id)
    services.set_restricted(row=row, restricted=request.POST.get("restricted") == "1", actor=request.user)
    return redirect("workspaces:show-sharing", slug, kind, row_id)


def _find(request: PersonRequest, slug: str, kind: str, row_id: UUID) -> tuple[dict[str, Any], type[Share], Any]:
    """Return the frame, the Share model and the row, which the person may manage. Raises NotFound."""
    frame = enter(request, slug)
    for model in share_models():
        shared = shared_kind(model)
        if shared._meta.model_name == kind:
            rows = cast("Any", shared).objects.editable_by(request.user).filter(workspace=frame["workspace"])
            return frame, model, get_object_or_404(rows, pk=row_id)
    raise NotFound


def _context(
    request: PersonRequest, frame: dict[str, Any], model: type[Share], row: Any, form: ShareForm | None = None
) -> dict[str, Any]:
    shares = model.objects.visible_to(request.user).filter(content_object=row)
    shares = shares.select_related("user", "department", "permission").order_by("created_at")
    context = {**frame, "row": row, "kind": row._meta.model_name, "what": row._meta.verbose_name, "shares": shares}
    return {**context, "form": form or _form(request, frame, row), "section": "knowledge"}


def _form(request: PersonRequest, frame: dict[str, Any], row: Any, data: Any = None) -> ShareForm:
    here = {"workspace": frame["workspace"]}
    members = Membership.objects.visible_to(request.user).running().filter(**here)
    departments = Department.objects.visible_to(request.user).filter(**here)
    return ShareForm(data, members=members, departments=departments, levels=levels_of(type(row)))
