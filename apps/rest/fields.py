"""Fields that serializers lack."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.common.text import NUL_AND_SURROGATES

DEEPEST, LARGEST = 8, 1000  # levels, and values in all: settings, not data


@extend_schema_field(OpenApiTypes.OBJECT)
class JsonObject(serializers.JSONField):
    """An object of settings, no deeper and larger than any is, without what PostgreSQL cannot store."""

    default_error_messages = {
        "not_an_object": "It must be an object.",
        "unfit": "It is too large, or holds characters that cannot be stored.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        if _size(data, DEEPEST) > LARGEST:
            self.fail("unfit")
        return super().to_internal_value(data)


def _size(value: Any, levels: int) -> int:
    """Return how many values there are; more than any may have where it is too deep or cannot be stored."""
    if levels < 0 or (isinstance(value, str) and NUL_AND_SURROGATES.search(value)):
        return LARGEST + 1
    inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(_size(item, levels - 1) for item in inner)
