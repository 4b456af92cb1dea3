"""Times are shown in the zone of whoever reads them: chosen, or told by the browser."""

from datetime import UTC, datetime

import pytest
from django.template import Context, Template
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone, translation

from apps.common.zones import ZoneMiddleware, names, zone_of
from apps.models.reports import first_day
from apps.workspaces.models import User

TEMPLATE = Template('{{ moment|date:"DATETIME_FORMAT" }}')


def shown(user, moment, cookie="", language="en"):
    """What a page says of ``moment``."""
    request = RequestFactory().get("/")
    request.user = user
    request.COOKIES = {"ks_session": "x", **({"ks_zone": cookie} if cookie else {})}
    with translation.override(language):
        return ZoneMiddleware(lambda request: TEMPLATE.render(Context({"moment": moment})))(request)


@pytest.mark.parametrize(
    ("zone", "moment", "english", "chinese"),
    [
        ("Asia/Shanghai", (2026, 1, 1, 16, 30), "2 Jan 2026, 00:30", "2026年1月2日 00:30"),
        ("Europe/Berlin", (2026, 3, 29, 0, 59), "29 Mar 2026, 01:59", "2026年3月29日 01:59"),
        ("Europe/Berlin", (2026, 3, 29, 1, 1), "29 Mar 2026, 03:01", "2026年3月29日 03:01"),  # summer time began
        ("Asia/Kathmandu", (2026, 6, 1, 20, 0), "2 Jun 2026, 01:45", "2026年6月2日 01:45"),
    ],
)
def test_a_moment_is_told_as_a_clock_there_says(ann, zone, moment, english, chinese):
    ann.time_zone = zone
    moment = datetime(*moment, tzinfo=UTC)
    assert shown(ann, moment) == english
    assert shown(ann, moment, language="zh-hans") == chinese


def test_what_was_chosen_goes_before_what_the_browser_says(ann):
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    ann.time_zone = "Asia/Shanghai"
    assert "20:00" in shown(ann, moment, cookie="America/New_York")
    ann.time_zone = ""
    assert "07:00" in shown(ann, moment, cookie="America/New_York")
    for wrong in ("../../etc/passwd", "Mars/Base", "Etc/GMT+5", "\x00", ""):
        assert "12:00" in shown(ann, moment, cookie=wrong)
    ann.time_zone = "Gone/Away"
    assert "12:00" in shown(ann, moment)
    assert timezone.get_current_timezone_name() == "UTC"  # nothing is left behind


def test_what_the_browser_says_is_kept_once_for_prompts_and_work_behind_the_scenes(client, ann, acme):
    client.force_login(ann)
    for zone in ("Asia/Shanghai", "Europe/Paris"):
        client.cookies["ks_zone"] = zone
        client.get(reverse("workspaces:show-account"))
    assert User.objects.get(pk=ann.pk).time_zone == "Asia/Shanghai"


def test_the_zone_and_the_name_are_changed_in_the_account(client, ann):
    client.force_login(ann)
    address = reverse("workspaces:change-account")
    page = client.post(address, {"name": " Ann\u202e Lee ", "time_zone": "Asia/Tokyo"}, follow=True)
    ann.refresh_from_db()
    assert (ann.name, ann.time_zone) == ("Ann Lee", "Asia/Tokyo")
    assert "selected>Asia/Tokyo" in page.content.decode()
    assert client.post(address, {"name": "", "time_zone": "Mars/Base"}).status_code == 422
    client.post(address, {"name": "", "time_zone": ""})
    ann.refresh_from_db()
    assert (ann.name, ann.time_zone) == ("", "")


def test_the_first_day_of_a_report_begins_at_midnight_there(monkeypatch):
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 31, 16, 30, tzinfo=UTC))
    with timezone.override(zone_of("Asia/Shanghai")):  # the first of April there
        assert first_day(1).isoformat() == "2026-04-01T00:00:00+08:00"
    with timezone.override(zone_of("Europe/Berlin")):  # over the change to summer time
        assert first_day(4).isoformat() == "2026-03-28T00:00:00+01:00"


def test_zones_are_those_of_places():
    assert {"UTC", "Asia/Shanghai", "America/Argentina/Buenos_Aires"} <= set(names())
    assert len(names()) > 300
