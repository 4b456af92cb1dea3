"""The page of one's own account."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from apps.common import zones
from apps.workspaces import services
from apps.workspaces.accounts import ask_again
from apps.workspaces.models import Notice, User
from apps.workspaces.pages import PersonRequest
from apps.workspaces.templatetags.notices import DISMISSED

MOST_DISMISSED = 50  # of a session, the latest


class DeleteAccountForm(forms.Form):
    """Say that it is oneself, and meant."""

    email = forms.EmailField(label=_("Your e-mail address"))


class PersonForm(forms.ModelForm[User]):
    """How one is called, and in which time zone one lives."""

    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        choices=lambda: [("", _("As this browser says")), *((name, name) for name in zones.names())],
        help_text=_("Times on pages, and “today” in questions, are those of this zone."),
    )

    class Meta:
        model = User
        fields = ("name", "time_zone")


@require_safe
@login_required
def show_account(request: PersonRequest) -> HttpResponse:
    """Show how one is called and signs in, and the end of the account."""
    return _page(request)


@require_POST
@login_required
def change_account(request: PersonRequest) -> HttpResponse:
    """Change one's name and time zone."""
    form = PersonForm(request.POST, instance=request.user)
    if not form.is_valid():
        return _page(request, person=form, status=422)
    services.change_person(user=request.user, **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("workspaces:show-account")


def _page(request: PersonRequest, status: int = 200, **forms_: forms.BaseForm) -> HttpResponse:
    context = {"form": DeleteAccountForm(), "person": PersonForm(instance=request.user), "now": timezone.now()}
    return render(request, "workspaces/show_account.html", {**context, **forms_}, status=status)


@require_POST
@login_required
def dismiss_notice(request: PersonRequest, notice_id: UUID) -> HttpResponse:
    """Close an operator's notice for this session; it stays on the page if it may not be closed."""
    found = get_object_or_404(Notice.objects.visible_to(request.user), pk=notice_id, dismissable=True)
    closed = request.session.get(DISMISSED, [])
    request.session[DISMISSED] = [*closed[1 - MOST_DISMISSED :], str(found.pk)]
    if request.htmx:
        return HttpResponse()
    there = request.POST.get("next", "")
    if there.startswith("/") and url_has_allowed_host_and_scheme(there, allowed_hosts=None):
        return HttpResponseRedirect(there)
    return redirect("workspaces:home")


@require_POST
@login_required
def delete_account(request: PersonRequest) -> HttpResponse:
    """End one's account, with all that is one's own alone."""
    form = DeleteAccountForm(request.POST)
    if form.is_valid() and form.cleaned_data["email"].lower() != request.user.email:
        form.add_error("email", _("This is not your address. Nothing was deleted."))
    if not form.is_valid():
        return _page(request, form=form, status=422)
    ask_again(request)
    services.delete_person(user=request.user)
    logout(request)
    return redirect("account_login")
