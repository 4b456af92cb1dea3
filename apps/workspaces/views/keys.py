"""Pages of API keys."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.workspaces import services
from apps.workspaces.forms import ApiKeyForm
from apps.workspaces.models import ApiKey
from apps.workspaces.pages import PersonRequest, enter

ROWS = 50


@require_safe
@login_required
def list_api_keys(request: PersonRequest, slug: str) -> HttpResponse:
    """List one's own keys to the workspace; owners and admins see everybody's."""
    return render(request, "workspaces/list_api_keys.html", _keys(request, enter(request, slug)))


@require_POST
@login_required
def create_api_key(request: PersonRequest, slug: str) -> HttpResponse:
    """Make a key and show it, this once."""
    frame, form = enter(request, slug), ApiKeyForm(request.POST)
    if not form.is_valid():
        return render(request, "workspaces/list_api_keys.html", _keys(request, frame, form=form), status=422)
    given = {name: form.cleaned_data[name] for name in ("name", "scopes", "expires_at")}
    _key, secret = services.create_api_key(workspace=frame["workspace"], actor=request.user, **given)
    response = render(request, "workspaces/list_api_keys.html", _keys(request, frame) | {"secret": secret})
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@login_required
def revoke_api_key(request: PersonRequest, slug: str, key_id: UUID) -> HttpResponse:
    """End a key."""
    frame = enter(request, slug)
    mine = ApiKey.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    services.revoke_api_key(key=get_object_or_404(mine, pk=key_id), actor=request.user)
    messages.success(request, _("The key was revoked. It opens nothing from now on."))
    return redirect("workspaces:list-api-keys", slug)


def _keys(request: PersonRequest, frame: dict[str, Any], form: ApiKeyForm | None = None) -> dict[str, Any]:
    keys = ApiKey.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    page = Paginator(keys.select_related("user").order_by("revoked_at", "-created_at"), ROWS)
    context = {"page": page.get_page(request.GET.get("page")), "form": form or ApiKeyForm(), "now": timezone.now()}
    return {**frame, **context, "section": "people"}
