"""Static files: under names that tell their content, for production, and sent without waiting for a disk."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Any

from django.contrib.staticfiles.storage import HashedFilesMixin
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from whitenoise.middleware import WhiteNoiseFileResponse, WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

PIECE_BYTES = 256 * 1024


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """WhiteNoise's storage that also rewrites the imports of our ES modules.

    Without it a page would load ``app.js`` twice, by its hashed and by its plain name, and everything
    in it would happen twice. Other packages' scripts are left alone: not all of them resolve.
    """

    support_js_module_import_aggregation = True
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        HashedFilesMixin._js_module_import_aggregation_patterns[1],  # type: ignore[attr-defined]
    )


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise, whose files an async server reads a piece at a time in a thread instead of whole."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> WhiteNoiseFileResponse:
        """Return a file."""
        response = WhiteNoiseMiddleware.serve(static_file, request)
        if isinstance(request, ASGIRequest) and response.file_to_stream is not None:
            response.streaming_content = _pieces(response.file_to_stream)
        return response


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece
    finally:
        file.close()
