"""Health of the process and of what it depends on."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.common import health


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive; touches nothing else."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer whether requests can be served, and which part is down.

    Only the database decides: without a worker or a model, pages and documents are still there.
    """
    parts = health.state_of_parts()
    served = parts["database"] == health.OK
    status = health.DOWN if not served else health.OK if set(parts.values()) == {health.OK} else "degraded"
    return JsonResponse({"status": status, **parts}, status=200 if served else 503)
