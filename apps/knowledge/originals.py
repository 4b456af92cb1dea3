"""Originals, and the text read from them, on their way to a reader: a piece at a time, never as a page of ours."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Any

from django.core.files.storage import default_storage
from django.http import HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

from apps.knowledge.models import Document, DocumentImage
from apps.knowledge.services.documents import storing

PIECE_BYTES = 256 * 1024


def download(document: Document) -> StreamingHttpResponse:
    """Return the uploaded file's bytes under its own name, with nothing that a browser would run.

    Raises:
        FileNotFoundError: the store has lost it.
        StorageFailed: the store does not answer.
    """
    with storing():
        file = document.file.open("rb")
    return send(file, name=document.name, size_bytes=document.size_bytes)


def send(file: IO[Any], *, name: str, size_bytes: int) -> StreamingHttpResponse:
    """Return an open file's bytes as a download, and close it when they are sent."""
    response = StreamingHttpResponse(_pieces(file), content_type="application/octet-stream")
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["Content-Length"] = str(size_bytes)
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def table(content: bytes, name: str) -> HttpResponse:
    """Return a table as a download."""
    response = HttpResponse(content, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def text(document: Document) -> StreamingHttpResponse:
    """Return the Markdown that was read from a document, as plain bytes.

    Raises:
        FileNotFoundError: it has not been read yet, or the store has lost it.
        StorageFailed: the store does not answer.
    """
    key = document.markdown_key or document.parsed.get("key", "")  # read, and not indexed yet
    if not key:
        raise FileNotFoundError
    response = StreamingHttpResponse(_pieces(_opened(key)), content_type="text/markdown; charset=utf-8")
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def picture(image: DocumentImage) -> StreamingHttpResponse:
    """Return a picture out of a document, to be shown. Its bytes never change under its address.

    Raises:
        FileNotFoundError: the store has lost it.
        StorageFailed: the store does not answer.
    """
    response = StreamingHttpResponse(_pieces(_opened(image.key)), content_type=image.content_type)
    response["Content-Length"] = str(image.size_bytes)
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, max-age=3600"
    return response


def _opened(key: str) -> IO[Any]:
    with storing():
        file: IO[Any] = default_storage.open(key, "rb")
    return file


async def _pieces(file: IO[bytes] | Any) -> AsyncIterator[bytes]:
    """Read in a thread, so that neither the loop waits nor the whole file is in memory."""
    try:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece
    finally:
        file.close()
