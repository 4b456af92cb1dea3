"""Middleware of our own: probes, an id on every request, and our errors as pages."""

import logging
import re
import uuid
from collections.abc import Callable
from typing import ClassVar

from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from apps.common import logs, views
from apps.common.bodies import refusal
from apps.common.errors import KnowSphereError, NotFound, ServiceUnavailable

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponse]
USABLE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")


class HealthMiddleware:
    """Answer probes before anything else: they come by address, whatever ALLOWED_HOSTS and redirects say."""

    PROBES: ClassVar[dict[str, GetResponse]] = {"/healthz": views.healthz, "/readyz": views.readyz}

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        probe = self.PROBES.get(request.path)
        return probe(request) if probe else self.get_response(request)


class RequestIdMiddleware:
    """Take the caller's X-Request-ID if it is harmless, else make one; return it and log with it."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        place = logs.client_ip.set(logs.address(request.META.get("REMOTE_ADDR")))
        token = logs.request_id.set(given if USABLE_ID.match(given) else uuid.uuid4().hex)
        try:
            response = self.get_response(request)
            response["X-Request-ID"] = logs.request_id.get()
            return response
        finally:
            logs.request_id.reset(token)
            logs.client_ip.reset(place)


class ErrorMiddleware:
    """Answer a KnowSphereError, raised by a view or met on the body's way in: JSON where wanted, else a page."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (refused := refusal(request)) is not None:
            return error_response(request, refused)
        response = self.get_response(request)
        refused = refusal(request)  # perhaps only now, while the form was read
        return response if refused is None else error_response(request, refused)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Translate our own errors, Http404 and a database that is away; Django logs all others."""
        if isinstance(exception, Http404):
            exception = NotFound()
        if isinstance(exception, OperationalError | InterfaceError):
            return outage_response(request, exception)
        if not isinstance(exception, KnowSphereError):
            return None
        if exception.status >= 500:
            logger.error("%s %s: %s", request.method, exception.code, exception.details)
        return error_response(request, exception)


def outage_response(request: HttpRequest, error: Exception) -> HttpResponse:
    """Say that the database does not answer, where middleware met it too."""
    logger.warning("%s %s waits for the database: %s", request.method, request.path, error)
    return error_response(request, ServiceUnavailable(service="PostgreSQL"))


def is_scripted(request: HttpRequest) -> bool:
    """Whether a script of a page asks, which wants an error as JSON."""
    return "HX-Request" in request.headers or "application/json" in request.headers.get("Accept", "")


def error_response(request: HttpRequest, error: KnowSphereError) -> HttpResponse:
    """Return an error in the shape that the request can use."""
    if is_scripted(request) or request.path.startswith("/api/"):
        return JsonResponse(error.as_dict(), status=error.status)
    context = {"error": error, "request_id": logs.request_id.get()}
    return render(request, "error.html", context, status=error.status)
