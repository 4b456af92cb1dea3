"""The edge of the API: whatever a view raises becomes ``{code, message, retryable, details}``."""

import logging
from typing import Any

from django.core.exceptions import DisallowedHost, PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response

from apps.common import errors as common
from apps.common.bodies import refusal, too_much
from apps.common.errors import KnowSphereError
from apps.common.middleware import error_response
from apps.rest import errors

logger = logging.getLogger(__name__)


def translate(exception: Exception, context: dict[str, Any]) -> Response:
    """Return the response for an exception of a view; one that nobody foresaw is logged here."""
    request = context.get("request")
    method = getattr(request, "method", None) or ""
    error = refusal(getattr(request, "_request", request)) or known(exception, method=method)
    if error is None:
        logger.error("an API view raised", exc_info=exception)
        error = common.Unexpected()
    elif error.status >= 500:
        logger.error("%s: %s", error.code, error.details)
    response = Response(error.as_dict(), status=error.status)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="KnowSphere"'
    if isinstance(error, errors.RateLimited):
        response["Retry-After"] = str(error.details["retry_after"])
    response.exception = True
    return response


def known(exception: Exception, *, method: str) -> KnowSphereError | None:
    """Return our own error for an exception that was foreseen."""
    if found := too_much(exception):
        return found
    match exception:
        case KnowSphereError():
            return exception
        case Http404():
            return common.NotFound()
        case exceptions.ValidationError():
            return invalid(exception.detail)
        case exceptions.Throttled():
            return errors.RateLimited(retry_after=max(1, round(getattr(exception, "wait", 0) or 1)))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return errors.NotSignedIn()
        case exceptions.PermissionDenied() if "CSRF" in str(exception.detail):
            return errors.RequestForged()
        case exceptions.PermissionDenied() | PermissionDenied():
            return common.NotAllowed()
        case exceptions.MethodNotAllowed():
            return errors.MethodNotAllowed(method=method[:20])
        case exceptions.UnsupportedMediaType():
            return errors.UnsupportedMediaType()
        case exceptions.ParseError() | MultiPartParserError() | SuspiciousOperation():
            return errors.Malformed(reason=str(getattr(exception, "detail", exception)))
        case OperationalError() | InterfaceError():
            return common.ServiceUnavailable(service="PostgreSQL")
    return None


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django itself could not read, before or in a view: by our own error too."""
    error = None if isinstance(exception, DisallowedHost) else known(exception, method=request.method or "")
    return error_response(request, error) if error else defaults.bad_request(request, exception)


def invalid(detail: Any) -> errors.FieldsInvalid:
    """Return one error for all fields that do not fit; ``fields`` maps each to its reasons."""
    fields = dict(_flat(detail))
    first = "; ".join(f"{name}: {reasons[0]}" for name, reasons in list(fields.items())[:3])
    return errors.FieldsInvalid(summary=first or _("the body is empty"), fields=fields)


def _flat(detail: Any, place: str = "") -> list[tuple[str, list[str]]]:
    if isinstance(detail, dict):
        return [
            found
            for name, inner in detail.items()
            for found in _flat(inner, place if name == "non_field_errors" else f"{place}.{name}".lstrip("."))
        ]
    if isinstance(detail, list):
        if any(isinstance(inner, dict | list) for inner in detail):
            return [found for index, inner in enumerate(detail) for found in _flat(inner, f"{place}.{index}")]
        return [(place or "body", [str(reason) for reason in detail])]
    return [(place or "body", [str(detail)])]
