"""Memory for operators: that there are items, never what they say."""

from django.contrib import admin
from django.http import HttpRequest

from apps.memory.models import MemoryItem


@admin.register(MemoryItem)
class MemoryItemAdmin(admin.ModelAdmin[MemoryItem]):
    """Counts and kinds; an operator may erase on request."""

    list_display = ("id", "workspace", "kind", "created_at")
    fields = readonly_fields = list_display
    list_filter = ("kind",)
    list_select_related = ("workspace",)
    search_fields = ("=id", "workspace__slug")
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: MemoryItem | None = None) -> bool:
        return False
