"""People, workspaces and rights for operators: ids and states, no tenant's content."""

from typing import Any

from allauth.account.admin import EmailAddress
from allauth.mfa.admin import Authenticator
from allauth.socialaccount.admin import SocialAccount, SocialApp, SocialToken
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.auth.views import redirect_to_login
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.common.errors import KnowSphereError, NotAllowed
from apps.workspaces import audit, services
from apps.workspaces.models import (
    ApiKey,
    AuditEvent,
    Department,
    DepartmentMember,
    Invitation,
    Membership,
    Notice,
    Quota,
    User,
    Workspace,
)


def sign_in(request: HttpRequest, extra_context: object = None) -> HttpResponse:
    """Lead to the one sign-in there is: Django's own for operators would ask nobody for their second step."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
    if not admin.site.has_permission(request):
        raise NotAllowed
    return redirect("admin:index")


admin.site.login = sign_in  # type: ignore[method-assign]


class ReadOnly:
    """Operators look; what changes rows are the services' actions."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.is_superuser

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser


class Audited:
    """What an operator changes by a form stands in the audit log: which fields, never their values."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        audit_admin(request, "added", obj, message)
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        audit_admin(request, "changed", obj, message)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        for obj in queryset:
            audit_admin(request, "deleted", obj, [])
        return super().log_deletions(request, queryset)  # type: ignore[misc]


def audit_admin(request: HttpRequest, act: str, obj: Any, message: Any) -> None:
    """Write an operator's act into the log of the workspace that the row belongs to, else into nobody's."""
    place = obj.pk if isinstance(obj, Workspace) else getattr(obj, "workspace_id", None)
    parts = [part.get("changed", {}) for part in message if isinstance(part, dict)]
    fields = [str(field) for part in parts for field in part.get("fields", [])]
    action = f"{obj._meta.model_name}.{act}_by_operator"
    actor: Any = request.user
    audit.record(action, who=actor, workspace_id=place, target=obj, right="operator", fields=fields)


class SupportForm(ActionForm):
    """Why an operator enters a workspace; the workspace reads it."""

    reason = forms.CharField(label=_("Reason, for support"), max_length=200, required=False)


@admin.register(User)
class UserAdmin(Audited, admin.ModelAdmin[User]):
    """People: lock and unlock."""

    list_display = ("id", "email", "is_active", "is_staff", "created_at")
    list_filter = ("is_active", "is_staff")
    search_fields = ("=id", "email")
    fields = ("email", "name", "is_active", "is_staff", "is_superuser")
    readonly_fields = ("email", "name", "is_active")
    actions = ("lock", "unlock", "remove_second_steps")
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # people sign up, are invited, or are made by a command: here they would have no address

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False  # services.delete_person leaves nothing behind; a bare delete would

    @admin.action(description=_("Lock out"), permissions=["change"])
    def lock(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Shut every door to them at once."""
        self._set_active(request, queryset, active=False)

    @admin.action(description=_("Let in again"), permissions=["change"])
    def unlock(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Let them sign in again."""
        self._set_active(request, queryset, active=True)

    @admin.action(description=_("Remove second steps that were lost"), permissions=["change"])
    def remove_second_steps(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Let them sign in by password alone again; their workspaces' logs say so."""
        try:
            for person in queryset:
                services.remove_second_steps(user=person, operator=request.user)  # type: ignore[arg-type]
        except KnowSphereError as error:
            self.message_user(request, error.message, messages.ERROR)

    def _set_active(self, request: HttpRequest, queryset: QuerySet[User], *, active: bool) -> None:
        try:
            for person in queryset:
                services.set_active(user=person, active=active, operator=request.user)  # type: ignore[arg-type]
        except KnowSphereError as error:
            self.message_user(request, error.message, messages.ERROR)


@admin.register(Notice)
class NoticeAdmin(admin.ModelAdmin[Notice]):
    """What operators tell everybody, or one workspace, between two moments."""

    list_display = ("id", "workspace", "level", "begins_at", "ends_at", "dismissable")
    list_filter = ("level",)
    list_select_related = ("workspace",)
    raw_id_fields = ("workspace",)
    fields = ("text_en", "text_zh", "level", "workspace", "begins_at", "ends_at", "dismissable")
    search_fields = ("=id", "=workspace__slug")
    show_full_result_count = False

    def save_model(self, request: HttpRequest, obj: Notice, form: Any, change: bool) -> None:
        services.save_notice(notice=obj, actor=request.user)  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: Notice) -> None:
        services.delete_notice(notice=obj, actor=request.user)  # type: ignore[arg-type]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Notice]) -> None:
        for notice in queryset:
            self.delete_model(request, notice)


@admin.register(Workspace)
class WorkspaceAdmin(ReadOnly, admin.ModelAdmin[Workspace]):
    """Workspaces, by id and slug. Entering one is a visit that it sees."""

    list_display = ("id", "slug", "created_at", "deleted_at")
    search_fields = ("=id", "slug")
    fields = readonly_fields = ("id", "slug", "created_at", "deleted_at")
    action_form = SupportForm
    actions = ("enter_for_support",)

    @admin.action(description=_("Enter for support, as a viewer for four hours"), permissions=["view"])
    def enter_for_support(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        """Join each workspace for a while; its list of people and its audit log say so."""
        try:
            for workspace in queryset.filter(deleted_at__isnull=True):
                reason = request.POST.get("reason", "")
                services.begin_support(workspace=workspace, operator=request.user, reason=reason)  # type: ignore[arg-type]
        except KnowSphereError as error:
            self.message_user(request, error.message, messages.ERROR)
            return
        count = queryset.count()
        words = ngettext("%(count)d workspace entered.", "%(count)d workspaces entered.", count) % {"count": count}
        self.message_user(request, words, messages.SUCCESS)


@admin.register(Membership)
class MembershipAdmin(ReadOnly, admin.ModelAdmin[Membership]):
    """Who is where."""

    list_display = ("id", "workspace", "user", "role", "support_until")
    list_select_related = ("workspace", "user")
    fields = readonly_fields = ("workspace", "user", "role", "support_until")


@admin.register(Department)
class DepartmentAdmin(ReadOnly, admin.ModelAdmin[Department]):
    """Departments by id; their names are the tenant's."""

    list_display = ("id", "workspace", "parent", "created_at")
    fields = readonly_fields = list_display
    list_select_related = ("workspace", "parent")


@admin.register(DepartmentMember)
class DepartmentMemberAdmin(ReadOnly, admin.ModelAdmin[DepartmentMember]):
    """Who is in which department."""

    list_display = ("id", "department", "membership", "created_at")
    fields = readonly_fields = list_display
    list_select_related = ("department", "membership")


@admin.register(Invitation)
class InvitationAdmin(ReadOnly, admin.ModelAdmin[Invitation]):
    """Invitations and their state."""

    list_display = ("id", "workspace", "role", "created_at", "expires_at", "accepted_at", "revoked_at")
    fields = readonly_fields = list_display
    list_select_related = ("workspace",)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly, admin.ModelAdmin[ApiKey]):
    """Keys, by how they begin. An operator can end one."""

    list_display = ("id", "start", "workspace", "user", "expires_at", "revoked_at", "last_used_at")
    fields = readonly_fields = (*list_display, "scopes")
    list_select_related = ("workspace", "user")
    search_fields = ("=id", "=start")
    actions = ("revoke",)

    @admin.action(description=_("Revoke"), permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """End the keys; the log of their workspaces says by whom."""
        for key in queryset:
            services.revoke_api_key(key=key, actor=request.user)  # type: ignore[arg-type]


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnly, admin.ModelAdmin[AuditEvent]):
    """The audit log by ids; names of things are the tenant's."""

    list_display = ("at", "workspace_id", "kind", "actor_id", "action", "target_kind", "target_id", "right", "ip")
    fields = readonly_fields = (*list_display, "credential_id")
    list_filter = ("kind",)
    search_fields = ("=workspace__id", "=actor__id", "=action")


@admin.register(Quota)
class QuotaAdmin(Audited, admin.ModelAdmin[Quota]):
    """Limits of workspaces and people: the operator sets any of them."""

    list_display = ("id", "workspace", "user", "kind", "used", "limit")
    fields = ("workspace", "user", "kind", "used", "limit")
    readonly_fields = ("workspace", "user", "kind", "used")
    list_filter = ("kind",)
    list_select_related = ("workspace", "user")
    search_fields = ("=workspace__slug",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


# django-allauth's own pages show what signs people in (seeds of one-time codes, recovery codes, tokens, what a provider
# told of a person) and let an address be moved to another account. Providers stand in the environment and tokens are
# not used. Operators see which addresses are whose, and take away a second step that was lost on the page of people.
for table in (EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken):
    if admin.site.is_registered(table):
        admin.site.unregister(table)


@admin.register(EmailAddress)
class EmailAddressAdmin(ReadOnly, admin.ModelAdmin[EmailAddress]):
    """Which addresses are whose, and which are confirmed."""

    list_display = ("id", "user", "email", "verified", "primary")
    fields = readonly_fields = list_display
    list_filter = ("verified",)
    list_select_related = ("user",)
    search_fields = ("=email",)
