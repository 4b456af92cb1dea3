"""Operators' view of knowledge: ids, states, counts. No names, no texts, no files."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.knowledge import services
from apps.knowledge.errors import BusyDocument
from apps.knowledge.models import Document, KnowledgeBase


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


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin, admin.ModelAdmin[Document]):
    """Documents by id and state, with one action, which calls the service the product itself calls."""

    list_display = ("id", "workspace", "status", "error_code", "attempt", "interruptions", "created_at")
    fields = readonly_fields = (
        *("id", "workspace", "knowledge_base", "content_type", "size_bytes", "status", "stage", "progress"),
        *("error_code", "attempt", "interruptions", "lease_until", "generation", "chunk_count", "failed_chunks"),
        *("page_count", "created_at", "changed_at", "indexed_at", "deleted_at"),
    )
    list_filter = ("status", "error_code", "content_type")
    list_select_related = ("workspace",)
    search_fields = ("=id", "=workspace__slug")
    actions = ("retry",)

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
