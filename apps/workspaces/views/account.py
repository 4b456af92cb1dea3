"""The page of one's own account."""

from django import forms
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from apps.workspaces import services
from apps.workspaces.pages import PersonRequest


class DeleteAccountForm(forms.Form):
    """Say that it is oneself, and meant."""

    email = forms.EmailField(label=_("Your e-mail address"))


@require_safe
@login_required
def show_account(request: PersonRequest) -> HttpResponse:
    """Show how one signs in, and the end of the account."""
    return render(request, "workspaces/show_account.html", {"form": DeleteAccountForm()})


@require_POST
@login_required
def delete_account(request: PersonRequest) -> HttpResponse:
    """End one's account, with all that is one's own alone."""
    form = DeleteAccountForm(request.POST)
    if form.is_valid() and form.cleaned_data["email"].lower() != request.user.email:
        form.add_error("email", _("This is not your address. Nothing was deleted."))
    if not form.is_valid():
        return render(request, "workspaces/show_account.html", {"form": form}, status=422)
    services.delete_person(user=request.user)
    logout(request)
    return redirect("account_login")
