"""Models for operators: their own to edit; a tenant's as a row without name, address or key."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError
from apps.common.fields import MASK
from apps.models import services
from apps.models.configuration import Configuration, validate_configuration
from apps.models.models import ModelConfig, UsageRecord
from apps.workspaces.models import User


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
        fields = ("kind", "provider", "name", "base_url", "configuration", "is_default", "enabled", "fallback")

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
        return ("kind", "provider", "name", "base_url", "new_key", "configuration", "is_default", "enabled", "fallback")

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
        key, actor = form.cleaned_data["new_key"], request.user
        if not isinstance(actor, User):
            raise KnowSphereError
        if change:
            stored = ModelConfig.objects.get(pk=obj.pk)
            services.change_model(model=stored, actor=actor, api_key=key, **values)
            return
        enabled, instead = values.pop("enabled"), values.pop("fallback")
        made = services.add_model(workspace=None, kind=obj.kind, actor=actor, api_key=key, **values)
        if not enabled or instead:
            services.change_model(model=made, actor=actor, enabled=enabled, fallback=instead)
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

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: UsageRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: UsageRecord | None = None) -> bool:
        return False
