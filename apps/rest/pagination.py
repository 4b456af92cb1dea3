"""Pages of lists: a cursor that holds its place while rows come and go."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import DataError
from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from apps.rest.errors import CursorInvalid


class Pages(CursorPagination):
    """Newest first unless the view says otherwise; ``?limit=`` up to 200, ``?cursor=`` from ``next``."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
    cursor_query_param = "cursor"
    ordering = ("-created_at", "-pk")

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        order: tuple[str, ...] = view.operation.order
        return order

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        """Return the page. Raises CursorInvalid for a cursor that nobody was given."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, ValidationError, ValueError, OverflowError, DataError) as error:
            raise CursorInvalid from error

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe the page: ``next`` and ``previous`` are whole addresses, or null."""
        link = {"type": "string", "format": "uri", "nullable": True}
        properties = {"next": link, "previous": link, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}
