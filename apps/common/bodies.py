"""Request bodies on their way in: bounded while they stream, before anything else looks at the request.

Django spools a whole body to disk before its first middleware runs, whoever sends it. Here it stops
at the limit; the request then arrives without a body, and ErrorMiddleware answers with the reason.
"""

import errno
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.core.files.uploadhandler import StopUpload, TemporaryFileUploadHandler
from django.core.handlers.asgi import ASGIHandler

from apps.common.errors import KnowSphereError, NoSpace, RequestTooLarge, ServiceUnavailable, TooManyFields

logger = logging.getLogger(__name__)

UPLOADS = re.compile(r"/(documents|attachments)/?\Z")  # the only addresses that take files
FRAME_BYTES = 1 << 20  # what a multipart body holds beside files and values
DROPPED_BYTES = 32 << 20  # read beyond the limit and dropped: who still sends does not hear an answer

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
REFUSED = "knowsphere.refused"  # in the scope: why the body was not taken


def refusal(request: Any) -> KnowSphereError | None:
    """Return why a request's body was not taken, if it was not."""
    found: KnowSphereError | None = getattr(request, "scope", {}).get(REFUSED)
    return found


def limit_of(path: str) -> int:
    """Return how many bytes a request to ``path`` may carry."""
    if UPLOADS.search(path):
        return int(settings.MAX_UPLOAD_BYTES) + FRAME_BYTES
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or FRAME_BYTES) + FRAME_BYTES


def too_much(exception: Exception) -> KnowSphereError | None:
    """Return our error for a body that Django found too large once it read it, if that is what it met."""
    match exception:
        case RequestDataTooBig():
            return RequestTooLarge(limit_mb=int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or FRAME_BYTES) >> 20)
        case TooManyFieldsSent() | TooManyFilesSent():
            return TooManyFields(
                fields=settings.DATA_UPLOAD_MAX_NUMBER_FIELDS, files=settings.DATA_UPLOAD_MAX_NUMBER_FILES
            )
    return None


class Body:
    """A request's ``receive`` that passes on no more than the limit, then drops what still comes."""

    def __init__(self, scope: dict[str, Any], receive: Receive) -> None:
        self.scope = scope
        self._receive = receive
        self._limit = limit_of(scope["path"])
        self._left = self._limit
        self._ended = False
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._limit):
            self.too_large()

    def too_large(self) -> None:
        """Refuse the rest."""
        self.scope[REFUSED] = RequestTooLarge(limit_mb=max(1, (self._limit - FRAME_BYTES) >> 20))

    def broke(self, error: OSError) -> None:
        """Refuse the rest because what came could not be kept."""
        self._ended = True
        self.scope[REFUSED] = _reason(error)

    async def __call__(self) -> Mapping[str, Any]:
        if not self._ended and REFUSED in self.scope:
            return self._end()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            if self._ended:
                continue  # Django listens for a disconnect now; nobody wants the rest
            self._left -= len(message.get("body", b""))
            last = not message.get("more_body", False)
            if self._left >= 0:
                self._ended = last
                return message
            self.too_large()
            if last or self._left < -DROPPED_BYTES:
                return self._end()

    def _end(self) -> Mapping[str, Any]:
        self._ended = True
        return {"type": "http.request", "body": b"", "more_body": False}


class Handler(ASGIHandler):
    """Django's handler with a bounded body, and a sentence where the disk cannot hold it."""

    async def handle(self, scope: dict[str, Any], receive: Receive, send: Any) -> None:
        await super().handle(scope, Body(scope, receive), send)

    async def read_body(self, receive: Any) -> IO[bytes]:
        try:
            body: IO[bytes] = await super().read_body(receive)
        except OSError as error:
            receive.broke(error)
            return BytesIO()
        return body


class UploadHandler(TemporaryFileUploadHandler):
    """Files of a form on disk, with a sentence where it cannot hold them."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> Any:
        try:
            return super().receive_data_chunk(raw_data, start)
        except OSError as error:
            if self.request is not None:
                vars(self.request).setdefault("scope", {})[REFUSED] = _reason(error)
            raise StopUpload(connection_reset=True) from error


def _reason(error: OSError) -> KnowSphereError:
    logger.error("a request's body could not be kept: %s", error.strerror)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return NoSpace() if full else ServiceUnavailable(service="storage")
