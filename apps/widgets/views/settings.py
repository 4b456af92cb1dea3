"""The owner's pages: widgets, their settings with a live preview, and what visitors asked."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.widgets import editing, services, showing, tokens
from apps.widgets.forms import NewWidgetForm, WidgetForm
from apps.widgets.models import Visitor, Widget
from apps.widgets.querysets import transcripts
from apps.workspaces import audit
from apps.workspaces.pages import PersonRequest, enter

A_PAGE = 30


def _enter(request: PersonRequest, slug: str) -> dict[str, Any]:
    return {**enter(request, slug, act="manage_widgets"), "section": "widgets"}


def _own(request: PersonRequest, frame: dict[str, Any], widget_id: UUID) -> Widget:
    mine = Widget.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return get_object_or_404(mine.select_related("agent"), pk=widget_id)


@require_GET
@login_required
def list_widgets(request: PersonRequest, slug: str) -> HttpResponse:
    """Show the widgets of a workspace."""
    return _list(request, _enter(request, slug), NewWidgetForm())


def _list(request: PersonRequest, frame: dict[str, Any], form: NewWidgetForm, status: int = 200) -> HttpResponse:
    rows = Widget.objects.visible_to(request.user).filter(workspace=frame["workspace"]).select_related("agent")
    rows = rows.annotate(visitor_count=Count("visitors")).order_by("name")
    page = Paginator(rows, A_PAGE).get_page(request.GET.get("page"))
    return render(request, "widgets/list_widgets.html", {**frame, "page": page, "form": form}, status=status)


@require_POST
@login_required
def create_widget(request: PersonRequest, slug: str) -> HttpResponse:
    """Create a widget and show its settings."""
    frame = _enter(request, slug)
    form = NewWidgetForm(request.POST)
    if not form.is_valid():
        return _list(request, frame, form, status=422)
    widget = services.create_widget(workspace=frame["workspace"], actor=request.user, name=form.cleaned_data["name"])
    return redirect("widgets:show-widget", slug, widget.pk)


@require_GET
@login_required
def show_widget(request: PersonRequest, slug: str, widget_id: UUID) -> HttpResponse:
    """Show a widget's settings, its snippet, and the widget itself."""
    frame = _enter(request, slug)
    widget = _own(request, frame, widget_id)
    return _show(request, frame, widget, editing.form_of(widget, actor=request.user))


def _show(
    request: PersonRequest, frame: dict[str, Any], widget: Widget, form: WidgetForm, status: int = 200
) -> HttpResponse:
    kept = Widget.objects.visible_to(request.user).get(
        pk=widget.pk
    )  # the form has written what was refused into its own
    context = {
        "widget": kept,
        "form": form,
        "site": settings.SITE_URL.rstrip("/"),
        "ticket": tokens.make_ticket(kept, services.own_origin(), preview=True),
        "secret": request.session.pop(f"widget-secret-{kept.pk}", ""),
    }
    return render(request, "widgets/show_widget.html", {**frame, **context}, status=status)


@require_POST
@login_required
def change_widget(request: PersonRequest, slug: str, widget_id: UUID) -> HttpResponse:
    """Save a widget's settings; a form that does not fit comes back with 422."""
    frame = _enter(request, slug)
    widget = _own(request, frame, widget_id)
    form = editing.form_of(widget, actor=request.user, data=request.POST)
    if not form.is_valid():
        return _show(request, frame, widget, form, status=422)
    editing.save(form, widget=widget, actor=request.user)
    messages.success(request, _("Saved. It counts from the next question on."))
    return redirect("widgets:show-widget", slug, widget.pk)


@require_POST
@login_required
def renew_secret(request: PersonRequest, slug: str, widget_id: UUID) -> HttpResponse:
    """Make a new secret for signed identities; it is shown once."""
    widget = _own(request, _enter(request, slug), widget_id)
    secret = services.renew_identity_secret(widget=widget, actor=request.user)
    request.session[f"widget-secret-{widget.pk}"] = secret
    return redirect("widgets:show-widget", slug, widget.pk)


@require_POST
@login_required
def renew_id(request: PersonRequest, slug: str, widget_id: UUID) -> HttpResponse:
    """Give the widget another public id, so that old snippets end."""
    widget = _own(request, _enter(request, slug), widget_id)
    services.renew_public_id(widget=widget, actor=request.user)
    messages.success(request, _("The widget has a new id. Put the new snippet into your site; the old one has ended."))
    return redirect("widgets:show-widget", slug, widget.pk)


@require_POST
@login_required
def delete_widget(request: PersonRequest, slug: str, widget_id: UUID) -> HttpResponse:
    """Delete a widget with its visitors and their conversations."""
    widget = _own(request, _enter(request, slug), widget_id)
    services.delete_widget(widget=widget, actor=request.user)
    messages.success(request, _("The widget is deleted, with what its visitors asked."))
    return redirect("widgets:list-widgets", slug)


@require_GET
@login_required
def list_transcripts(request: PersonRequest, slug: str, widget_id: UUID) -> HttpResponse:
    """Show the conversations of a widget's visitors, newest first."""
    frame = _enter(request, slug)
    widget = _own(request, frame, widget_id)
    rows = transcripts(widget).annotate(turn_count=Count("turns")).filter(turn_count__gt=0)
    page = Paginator(rows, A_PAGE).get_page(request.GET.get("page"))
    audit.opened(widget, who=request.user, action="transcripts.listed", right=frame["right"])
    known = Visitor.objects.visible_to(request.user)
    visitors = known.in_bulk([row.visitor_id for row in page])
    shown = [(row, visitors.get(row.visitor_id)) for row in page]
    return render(request, "widgets/list_transcripts.html", {**frame, "widget": widget, "page": page, "shown": shown})


@require_GET
@login_required
def show_transcript(request: PersonRequest, slug: str, widget_id: UUID, conversation_id: UUID) -> HttpResponse:
    """Show what one visitor asked, and what they were answered."""
    frame = _enter(request, slug)
    widget = _own(request, frame, widget_id)
    talk = get_object_or_404(transcripts(widget), pk=conversation_id)
    visitor = Visitor.objects.visible_to(request.user).filter(pk=talk.visitor_id).first() if talk.visitor_id else None
    turns = showing.turns_of(widget, services.principal_of(widget, visitor), talk) if visitor else []
    right, conversation = frame["right"], str(talk.pk)
    audit.opened(widget, who=request.user, action="transcript.opened", right=right, conversation=conversation)
    context = {"widget": widget, "talk": talk, "visitor": visitor, "turns": turns}
    return render(request, "widgets/show_transcript.html", {**frame, **context})
