"""Each person's own time zone: chosen in the account, told by the browser until then."""

from collections.abc import Callable
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth import get_user_model
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps.common.middleware import outage_response

COOKIE = "ks_zone"  # app.js keeps the browser's zone in it

GetResponse = Callable[[HttpRequest], HttpResponse]


@lru_cache
def names() -> tuple[str, ...]:
    """Return the zones that one may choose, as IANA names them, without historical and technical ones."""
    places = {name for name in available_timezones() if "/" in name and not name.startswith("Etc/")}
    return (*sorted(places), "UTC")


def zone_of(name: str) -> ZoneInfo | None:
    """Return the zone of that name; None for what is no zone, whatever a cookie or an old row says."""
    return ZoneInfo(name) if name in names() else None


class ZoneMiddleware:
    """Show times in the zone of whoever reads; keep the browser's as theirs where they chose none.

    Prompts and background work know the person alone, so what the browser says is stored once.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        told = zone_of(request.COOKIES.get(COOKIE, ""))
        if told is None and not request.COOKIES:  # probes, programs with keys: no session to ask for
            return self.get_response(request)
        try:
            chosen = zone_of(getattr(request.user, "time_zone", ""))
            if told and request.user.is_authenticated and not request.user.time_zone:
                get_user_model().objects.filter(pk=request.user.pk, time_zone="").update(time_zone=told.key)
        except (OperationalError, InterfaceError) as error:  # the first here to ask for the session
            return outage_response(request, error)
        with timezone.override(chosen or told):
            return self.get_response(request)
