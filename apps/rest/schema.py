"""The OpenAPI document, made from the views' operations."""

import re
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.rest.idempotency import HEADER
from apps.rest.operations import Operation
from apps.rest.pagination import Pages

CAPITAL = re.compile(r"([A-Z])")
REPEATABLE = OpenApiParameter(
    HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    pattern=r"^[\x21-\x7e][\x20-\x7e]{0,254}$",
    description="Makes a repeated request harmless: within a day the same key with the same body is carried out once.",
)


class Error(serializers.Serializer[Any]):
    """What every refused request gets. Rely on `code`, never on `message`."""

    code = serializers.CharField(help_text="Stable; see docs/errors.md.")
    message = serializers.CharField(help_text="A sentence for people, in the language of the request.")
    retryable = serializers.BooleanField(help_text="Whether the same request may succeed later.")
    details = serializers.DictField(help_text="What the sentence speaks of, for programs.")


class OperationSchema(AutoSchema):
    """Describes an ApiView by its operations."""

    @property
    def operation(self) -> Operation | None:
        """The operation of the method that is described; None for other views."""
        found: Operation | None = getattr(self.view, "operations", {}).get(self.method)
        return found

    def is_excluded(self) -> bool:
        return self.operation is None

    def _is_list_view(self, serializer: Any = None) -> bool:
        return bool(self.operation and self.operation.many)

    def _get_paginator(self) -> Any:
        return Pages()

    def get_operation_id(self) -> str:
        """Return the method and the view's name: ``get_knowledge_bases``."""
        name = CAPITAL.sub(r"_\1", type(self.view).__name__).lower()
        return f"{self.method.lower()}{name}"

    def get_auth(self) -> list[Any]:
        return []  # the same for all: ``describe_frame`` says it once

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").partition("/")[0]]

    def get_summary(self) -> str:
        return self.get_description().partition("\n")[0]

    def get_description(self) -> str:  # type: ignore[override]  # as drf-spectacular has it
        doc = getattr(getattr(self.view, f"on_{self.method.lower()}"), "__doc__", None) or self.view.__doc__ or ""
        scope = self.operation.scope if self.operation else ""
        text = "\n".join(line.strip() for line in doc.strip().splitlines())
        return f"{text}\n\nScope of a key: `{scope}`." if scope else text

    def get_request_serializer(self) -> Any:
        return self.operation.input if self.operation else None

    def get_override_parameters(self) -> list[Any]:
        operation = self.operation
        if operation is None:
            return []
        parameters: list[Any] = [operation.query] if operation.query else []
        return [*parameters, *([REPEATABLE] if self.method != "GET" and operation.changes else [])]

    def get_response_serializers(self) -> Any:
        operation = self.operation
        if operation is None:
            return {}
        refused = OpenApiResponse(Error, description="Refused; nothing was changed.")
        good: dict[Any, Any] = {}
        if operation.output is not None:
            good[operation.status] = operation.output
        elif not operation.media_types:
            good[operation.status] = OpenApiResponse(description="Done; there is nothing more to say.")
        for media_type in operation.media_types:
            good[operation.status, media_type] = OpenApiResponse(OpenApiTypes.BINARY, description="The bytes.")
        return {**good, "4XX": refused, "5XX": refused}


def describe_frame(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Put what holds for all operations into the document: how to sign in."""
    result["components"].setdefault("securitySchemes", {})["key"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key of a workspace; it begins with `ks_`.",
    }
    result["security"] = [{"key": []}]
    return result


class SchemaView(APIView):
    """The OpenAPI document, for anybody: it holds nothing of any workspace."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    schema = None

    def get(self, request: Request) -> Response:
        """Return the document as JSON."""
        from django.core.cache import cache
        from drf_spectacular.generators import SchemaGenerator

        def make() -> Any:
            return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]

        return Response(cache.get_or_set("openapi", make, 3600))
