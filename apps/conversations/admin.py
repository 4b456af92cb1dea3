"""Operators see how conversations and turns are, never what was said in them."""

from django.contrib import admin
from django.http import HttpRequest

from apps.conversations.models import Conversation, Turn


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Nothing can be added, changed or deleted here: the product's own services do that."""

    show_full_result_count = False  # COUNT(*) over every tenant's rows

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False

    has_delete_permission = has_change_permission


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    """Ids and times."""

    list_display = ("id", "workspace", "created_at", "changed_at", "deleted_at")
    fields = readonly_fields = list_display
    list_select_related = ("workspace",)
    search_fields = ("=id", "workspace__slug")


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    """Ids, states and times."""

    list_display = ("id", "conversation", "number", "status", "model", "last_seq", "started_at", "finished_at")
    fields = readonly_fields = (*list_display, "owner_process", "heartbeat_at", "stop_requested")
    list_filter = ("status",)
    list_select_related = ("conversation",)
    search_fields = ("=id", "=conversation__id")
