"""Idempotency-Key: a write that is sent twice is carried out once.

The claim is a row that is committed before the work begins; the unique constraint picks the winner
of two that race. What failed for a reason that may pass leaves no row, so that a retry tries again.
"""

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from apps.rest.errors import IdempotencyKeyInvalid, IdempotencyKeyReused, RequestInProgress
from apps.rest.models import CarriedOut

HEADER = "Idempotency-Key"
USABLE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,254}\Z")


def once(
    request: Request, *, caller: str, work: Callable[[], Response], again: Callable[[str, int], Response]
) -> Response:
    """Do ``work`` unless this caller's key has been here; then answer by ``again(row, status)``.

    ``work``'s response says which row it wrote in ``response.written``.

    Raises:
        IdempotencyKeyInvalid, IdempotencyKeyReused, RequestInProgress.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return work()
    if not USABLE.match(key):
        raise IdempotencyKeyInvalid
    mark = fingerprint(request)
    claim = _claim(caller, key, mark)
    if claim is None:
        return _repeat(caller, key, mark, again)
    try:
        response = work()
    except BaseException:
        claim.delete()
        raise
    claim.status, claim.row = response.status_code, getattr(response, "written", "")
    claim.save(update_fields=["status", "row"])
    return response


def _claim(caller: str, key: str, mark: str) -> CarriedOut | None:
    mine = CarriedOut.objects.of(caller, key)
    (mine.forgotten() | mine.abandoned()).delete()
    try:
        with transaction.atomic():
            return CarriedOut.objects.create(caller=caller, key=key, fingerprint=mark)
    except IntegrityError:
        return None


def _repeat(caller: str, key: str, mark: str, again: Callable[[str, int], Response]) -> Response:
    earlier = CarriedOut.objects.of(caller, key).first()
    if earlier is not None and earlier.fingerprint != mark:
        raise IdempotencyKeyReused
    if earlier is None or earlier.status is None:
        raise RequestInProgress
    response = again(earlier.row, earlier.status)
    response["Idempotent-Replay"] = "true"
    return response


def fingerprint(request: Request) -> str:
    """Return a hash of what a request asks for: method, path, parameters, and input with its files' contents."""
    data: Any = request.data
    lists = data.lists() if hasattr(data, "lists") else None
    plain = {name: [_plain(value) for value in values] for name, values in lists} if lists is not None else data
    what = [request.method, request.path, sorted(request.query_params.lists()), plain]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()


def _plain(value: Any) -> Any:
    if not isinstance(value, UploadedFile):
        return value
    value.seek(0)
    digest = hashlib.file_digest(value, "sha256").hexdigest()
    value.seek(0)
    return [value.name, digest]
