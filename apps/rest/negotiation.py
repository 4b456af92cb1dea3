"""Which format an answer has."""

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request


class AlwaysJson(BaseContentNegotiation):
    """JSON, whatever Accept says: bytes and streams are answered by their views themselves."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        """Return the parser for the body's type, None where no parser takes it."""
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == kind), None)

    def select_renderer(self, request: Request, renderers: Iterable[Any], format_suffix: str | None = None) -> Any:
        """Return the only renderer."""
        only = next(iter(renderers))
        return only, only.media_type
