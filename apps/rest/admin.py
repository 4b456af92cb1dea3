"""Repeatable requests for operators: when, and how they ended."""

from django.contrib import admin
from django.http import HttpRequest

from apps.rest.models import CarriedOut


@admin.register(CarriedOut)
class CarriedOutAdmin(admin.ModelAdmin[CarriedOut]):
    """Requests under an Idempotency-Key; neither the key nor what was sent is shown."""

    list_display = ("id", "caller", "status", "began_at")
    fields = readonly_fields = list_display
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: CarriedOut | None = None) -> bool:
        return False

    has_delete_permission = has_change_permission
