"""The command palette: as a part of every page, and as a page of its own where no script runs."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from apps.common.text import storable
from apps.conversations import palette
from apps.workspaces.pages import PersonRequest, enter


@require_safe
@never_cache
@vary_on_headers("HX-Request")
@login_required
def jump(request: PersonRequest, slug: str) -> HttpResponse:
    """List what has the asked text in its name."""
    frame = enter(request, slug)
    text = storable(request.GET.get("q", ""))
    groups = palette.find(text, workspace=frame["workspace"], user=request.user, role=frame["role"])
    context = {"groups": groups, "text": text, "found": sum(len(group.places) for group in groups)}
    if request.htmx:
        return render(request, "conversations/partials/_places.html", {**context, "options": True})
    return render(request, "conversations/jump.html", {**frame, **context})
