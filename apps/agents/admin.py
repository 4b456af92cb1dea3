"""Agents for operators: how they are set up, not what a team told them."""

from django.contrib import admin
from django.http import HttpRequest

from apps.agents.models import Agent


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin[Agent]):
    """No instructions, no names: those are a tenant's content."""

    list_display = ("id", "workspace", "is_default", "tools", "model", "created_at")
    fields = readonly_fields = (*list_display, "all_knowledge_bases")
    list_filter = ("is_default",)
    list_select_related = ("workspace", "model")
    search_fields = ("=id", "workspace__slug")
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        return False

    has_delete_permission = has_change_permission
