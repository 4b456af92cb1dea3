"""What one method at one address takes, gives and needs; code and schema both read it."""

from dataclasses import dataclass
from typing import Any

from rest_framework.serializers import BaseSerializer

Shape = type[BaseSerializer[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of an ApiView.

    ``scope`` is what a key must be allowed; ``many``: the answer is a page of ``output``;
    ``changes``: False where a POST only asks; ``order``: of a list, the last name unique;
    ``files``: the body is a form with files; ``media_types``: of an answer that need not be JSON.
    """

    output: Shape | None = None
    input: Shape | None = None
    query: Shape | None = None
    scope: str
    many: bool = False
    status: int = 200
    changes: bool = True
    files: bool = False
    media_types: tuple[str, ...] = ()
    order: tuple[str, ...] = ("-created_at", "-pk")
