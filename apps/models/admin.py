"""Models for operators: their own to edit; a tenant's as a row without name, address or key."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError
from apps.common.fields import MASK
from apps.models import budget_services, reports, services
from apps.models.configuration import Configuration, validate_configuration
from apps.models.models import Budget, ModelConfig, UsageRecord
from apps.workspaces.models import User

ROLES = ("is_default", "is_fast", "enabled", "fallback")


class ModelForm(forms.ModelForm[ModelConfig]):
    """A key can be written here, never read."""

    base_url = forms.URLField(label=_("Address"), assume_scheme="https")
    new_key = forms.CharField(
        label=_("Key"),
        required=False,
        strip=True,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text=_("Empty keeps the stored key. A new address needs the key entered again."),
    )
    configuration = forms.JSONField(
        label=_("Limits and capabilities"),
        required=False,
        validators=[validate_configuration],
        help_text=", ".join(Configuration.model_fields),
    )

    fallback = forms.ModelChoiceField(
        ModelConfig.objects.filter(workspace=None), label=_("Instead, while it is down"), required=False
    )

    class Meta:
        model = ModelConfig
        fields = (
            "kind",
            "provider",
            "name",
            "base_url",
            "configuration",
            "is_default",
            "is_fast",
            "enabled",
            "fallback",
        )

    def clean_configuration(self) -> Any:
        return self.cleaned_data.get("configuration") or {}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        key = cleaned.get("new_key", "")
        address = str(cleaned.get("base_url", "")).rstrip("/")
        stored = self.instance.api_key is not None and self.instance.base_url
        if stored and address != stored and key in ("", MASK):
            self.add_error("new_key", _("A new address needs the key entered again."))
        return cleaned

    def validate_constraints(self) -> None:
        """Leave "one default a kind" to the service, which lets the new one take the old one's place."""


@admin.register(ModelConfig)
class ModelConfigAdmin(admin.ModelAdmin[ModelConfig]):
    """The operator's models; every write is the service's."""

    form = ModelForm
    list_display = ("id", "workspace", "kind", "is_default", "enabled", "created_at")
    list_filter = ("kind", "enabled", ("workspace", admin.EmptyFieldListFilter))
    list_select_related = ("workspace",)
    search_fields = ("=id", "workspace__slug")
    show_full_result_count = False
    actions = None

    def get_fields(self, request: HttpRequest, obj: ModelConfig | None = None) -> Any:
        if obj is not None and obj.workspace_id is not None:
            return self.list_display
        return ("kind", "provider", "name", "base_url", "new_key", "configuration", *ROLES)

    def get_readonly_fields(self, request: HttpRequest, obj: ModelConfig | None = None) -> Any:
        if obj is not None and obj.workspace_id is not None:
            return self.list_display
        return () if obj is None else ("kind",)

    def has_change_permission(self, request: HttpRequest, obj: ModelConfig | None = None) -> bool:
        mine = obj is None or obj.workspace_id is None
        return mine and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: ModelConfig | None = None) -> bool:
        return False  # knowledge bases hold its vectors and turns its name: switch it off instead

    def save_model(self, request: HttpRequest, obj: ModelConfig, form: Any, change: bool) -> None:
        values = {name: form.cleaned_data[name] for name in services.CHANGEABLE}
        key, actor = form.cleaned_data["new_key"], _operator(request)
        if change:
            stored = ModelConfig.objects.get(pk=obj.pk)
            services.change_model(model=stored, actor=actor, api_key=key, **values)
            return
        later = {name: values.pop(name) for name in ("enabled", "fallback", "is_fast")}
        made = services.add_model(workspace=None, kind=obj.kind, actor=actor, api_key=key, **values)
        services.change_model(model=made, actor=actor, **later)
        obj.pk = made.pk


@admin.register(UsageRecord)
class UsageRecordAdmin(admin.ModelAdmin[UsageRecord]):
    """What was used, by whom; written by the gateway, changed by nobody."""

    list_display = (
        "at",
        "workspace",
        "user_id",
        "model",
        "purpose",
        "tokens_in",
        "tokens_out",
        "tokens_cached",
        "estimated",
        "ms",
        "outcome",
        "cost",
        "currency",
    )
    list_filter = ("kind", "outcome", "purpose")
    list_select_related = ("workspace",)
    search_fields = ("=turn_id", "=conversation_id", "=user__id", "workspace__slug")
    ordering = ("-id",)
    show_full_result_count = False
    actions = None
    change_list_template = "admin/models/calls.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.by_workspace)
        return [path("by-workspace/", view, name="models_usagerecord_by_workspace"), *super().get_urls()]

    def by_workspace(self, request: HttpRequest) -> HttpResponse:
        """Show what each workspace used and cost in the last days: numbers alone, no content."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        wanted = request.GET.get("days", "")
        days = next((days for days in reports.PERIODS if str(days) == wanted), reports.DAYS)
        rows = UsageRecord.objects.since(reports.first_day(days)).by_workspace()
        context = {
            **self.admin_site.each_context(request),
            "title": _("Use of models by workspace"),
            "opts": self.opts,
            "rows": rows,
            "days": days,
            "periods": reports.PERIODS,
        }
        return render(request, "admin/models/by_workspace.html", context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: UsageRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: UsageRecord | None = None) -> bool:
        return False


class BudgetForm(forms.ModelForm[Budget]):
    """A budget that the workspace cannot lift."""

    unit = forms.ChoiceField(label=_("Unit"), choices=[(unit, unit) for unit in budget_services.UNITS])

    class Meta:
        model = Budget
        fields = ("workspace", "scope", "amount", "unit", "period")

    def validate_constraints(self) -> None:
        """Leave "one of a kind" to the service, which changes the amount of the one that there is."""


@admin.register(Budget)
class BudgetAdmin(admin.ModelAdmin[Budget]):
    """What workspaces may spend; every write is the service's."""

    form = BudgetForm
    list_display = ("workspace", "scope", "amount", "unit", "period", "by_operator", "created_at")
    list_filter = ("scope", "period", "by_operator")
    list_select_related = ("workspace",)
    search_fields = ("=id", "workspace__slug")
    autocomplete_fields = ()
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        return () if obj is None else ("workspace", "scope", "unit", "period")

    def has_change_permission(self, request: HttpRequest, obj: Budget | None = None) -> bool:
        return (obj is None or obj.by_operator) and super().has_change_permission(request, obj)

    has_delete_permission = has_change_permission

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        made = budget_services.set_budget(
            workspace=obj.workspace,
            actor=_operator(request),
            scope=obj.scope,
            amount=obj.amount,
            unit=obj.unit,
            period=obj.period,
            subject=obj.subject,
            by_operator=True,
        )
        obj.pk = made.pk

    def delete_model(self, request: HttpRequest, obj: Budget) -> None:
        budget_services.remove_budget(budget=obj, actor=_operator(request))


def _operator(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise KnowSphereError
    return request.user
