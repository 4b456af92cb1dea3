"""Operators' view of knowledge: ids, states, counts. No names, no texts, no files."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.knowledge import services
from apps.knowledge.errors import BusyDocument
from apps.knowledge.models import Document, Job, KnowledgeBase
from apps.knowledge.services import fairness
from apps.knowledge.services.sweeping import recover_expired


class ReadOnlyAdmin:
    """Operators look; what changes rows are the services' actions."""

    show_full_result_count = False  # COUNT(*) over every tenant's rows

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


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(ReadOnlyAdmin, admin.ModelAdmin[KnowledgeBase]):
    """Bases by id and workspace."""

    list_display = ("id", "workspace", "chunker", "embedding_model", "dimensions", "created_at", "deleted_at")
    fields = readonly_fields = list_display
    list_select_related = ("workspace",)
    search_fields = ("=id",)


class StuckFilter(admin.SimpleListFilter):
    """Documents whose worker is gone: their lease has run out."""

    title = _("lease")
    parameter_name = "lease"

    def lookups(self, request: HttpRequest, model_admin: object) -> "list[tuple[str, Any]]":
        return [("stuck", _("Run out")), ("held", _("Held"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        if self.value() == "stuck":
            return queryset.filter(lease_until__lt=timezone.now())
        return queryset.filter(lease_until__gte=timezone.now()) if self.value() == "held" else queryset


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin, admin.ModelAdmin[Job]):
    """Jobs by id, kind and state."""

    list_display = ("id", "workspace", "kind", "status", "stage", "position", "total", "created_at", "finished_at")
    fields = readonly_fields = (*list_display, "result", "progress", "error_code", "cancel_requested")
    list_filter = ("kind", "status")
    list_select_related = ("workspace",)
    search_fields = ("=id", "=workspace__slug")


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin, admin.ModelAdmin[Document]):
    """Documents by id and state, with one action, which calls the service the product itself calls."""

    list_display = ("id", "workspace", "status", "error_code", "attempt", "interruptions", "created_at")
    fields = readonly_fields = (
        *("id", "workspace", "knowledge_base", "content_type", "size_bytes", "status", "stage", "progress"),
        *("error_code", "attempt", "interruptions", "lease_until", "generation", "chunk_count", "failed_chunks"),
        *("page_count", "created_at", "changed_at", "indexed_at", "deleted_at"),
    )
    list_filter = ("status", StuckFilter, "error_code", "content_type")
    list_select_related = ("workspace",)
    search_fields = ("=id", "=workspace__slug")
    actions = ("retry", "release")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Tell the load of each workspace above the list."""
        if request.method == "GET":
            for row in fairness.load()[:10]:
                text = _("%(slug)s: %(waiting)s waiting, %(running)s in work, %(stuck)s stuck.") % row
                self.message_user(request, text, messages.WARNING if row["stuck"] else messages.INFO)
        return super().changelist_view(request, extra_context)

    @admin.action(description=_("Try failed documents again"), permissions=["view"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Queue the failed ones among the chosen documents."""
        count = 0
        for document in queryset.filter(status__in=[Document.Status.ERROR_PARSING, Document.Status.ERROR_INDEXING]):
            try:
                services.retry_document(document=document, actor=request.user)  # type: ignore[arg-type]
            except BusyDocument:
                continue
            count += 1
        text = ngettext("%(count)d document queued.", "%(count)d documents queued.", count) % {"count": count}
        self.message_user(request, text, messages.SUCCESS)

    @admin.action(description=_("Give stuck documents back to the queue"), permissions=["view"])
    def release(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Do at once what the sweeper does when a lease has run out."""
        count = recover_expired(queryset)
        text = ngettext("%(count)d document queued.", "%(count)d documents queued.", count) % {"count": count}
        self.message_user(request, text, messages.SUCCESS)
