"""People and workspaces for operators: ids and states, no tenant's content."""

from django.contrib import admin

from apps.workspaces.models import Membership, User, Workspace


@admin.register(User)
class UserAdmin(admin.ModelAdmin[User]):
    """People: lock and unlock."""

    list_display = ("id", "email", "is_active", "is_staff", "created_at")
    list_filter = ("is_active", "is_staff")
    search_fields = ("=id", "email")
    fields = ("email", "name", "is_active", "is_staff", "is_superuser")
    readonly_fields = ("email", "name")
    show_full_result_count = False


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin[Workspace]):
    """Workspaces, by id and slug."""

    list_display = ("id", "slug", "created_at")
    search_fields = ("=id", "slug")
    fields = readonly_fields = ("id", "slug", "created_at")
    show_full_result_count = False


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin[Membership]):
    """Who is where."""

    list_display = ("id", "workspace", "user", "role")
    list_select_related = ("workspace", "user")
    fields = readonly_fields = ("workspace", "user", "role")
    show_full_result_count = False
