"""Every row that no app shows in the admin by itself: ids, states, numbers and moments, never a text.

An app that has more to say registers its model in its own ``admin.py``; it comes before this one.
"""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db import models
from django.http import HttpRequest

SHOWN = (
    models.AutoField,
    models.UUIDField,
    models.ForeignKey,
    models.DateTimeField,
    models.BooleanField,
    models.IntegerField,
    models.FloatField,
)


class RowAdmin(admin.ModelAdmin[Any]):
    """Rows for reading."""

    show_full_result_count = False
    list_per_page = 50

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_delete_permission = has_change_permission


def columns(model: type[models.Model]) -> list[str]:
    """Return the names of fields that hold nothing of what a tenant wrote: a choice is ours, a text is theirs."""
    return [
        field.name
        for field in model._meta.concrete_fields
        if isinstance(field, SHOWN) or getattr(field, "choices", None)
    ]


def register_the_rest() -> None:
    """Register what is left; a table without a single key cannot be shown."""
    for model in apps.get_models():
        single = not isinstance(model._meta.pk, models.CompositePrimaryKey)
        if model.__module__.startswith("apps.") and single and not admin.site.is_registered(model):
            names = columns(model)
            relations = [field.name for field in model._meta.concrete_fields if isinstance(field, models.ForeignKey)]
            options = {"list_display": names, "fields": names, "readonly_fields": names}
            shown = type(f"{model.__name__}Rows", (RowAdmin,), {**options, "list_select_related": relations or False})
            admin.site.register(model, shown)


register_the_rest()
