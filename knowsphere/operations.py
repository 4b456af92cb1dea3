"""The operators' page of what works, what waits and what is late. Numbers alone, nothing of any tenant."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import admin
from django.db import DatabaseError, connection
from django.db.models import Count, Min, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.models import Failure, OrmQ, Schedule, Success

from apps.common import health
from apps.conversations.models import Turn
from apps.knowledge.models import Document, Job
from apps.models.models import Kind, UsageRecord
from apps.workspaces.models import Notice, Quota, User, Workspace

LATE = timedelta(minutes=10)  # nothing should wait so long for a worker
LATE_JOB = timedelta(hours=1)
SHOWN = 5  # kinds of failure, the most frequent first
SILENT = timedelta(minutes=1)  # a turn's process says that it lives every two seconds


class Line(NamedTuple):
    """A number of the page. ``since``: of the oldest; ``bad``: somebody should look."""

    words: str
    value: object
    since: datetime | None = None
    bad: bool = False


def show_health(request: HttpRequest) -> HttpResponse:
    """Show the state of each part, and what is late. Where the database is away, only the parts."""
    parts = health.state_of_parts()
    groups: dict[str, list[Line]] = {_("Storage"): _storage()}
    if parts["database"] == health.OK:
        try:
            groups = {
                _("Late"): late(),
                _("Queue"): _queue(),
                **groups,
                _("Database"): _database(),
                _("Models"): _calls(),
                _("Notices"): _notices(),
            }
        except DatabaseError:
            parts["database"] = health.DOWN
    context = {**admin.site.each_context(request), "title": _("Health"), "parts": parts, "groups": groups}
    return render(request, "admin/health.html", context)


def late() -> list[Line]:
    """Return what waits longer than it should, or has been left behind."""
    now = timezone.now()
    documents = Document.objects.filter(deleted_at__isnull=True)
    waiting = documents.filter(status__in=tuple(Document.BUSY.values()), changed_at__lt=now - LATE)
    left = documents.filter(lease_until__lt=now, status__in=tuple(Document.BUSY))
    jobs = Job.objects.filter(status__in=Job.ACTIVE, created_at__lt=now - LATE_JOB)
    turns = Turn.objects.filter(status__in=Turn.ACTIVE, heartbeat_at__lt=now - SILENT)
    schedules = Schedule.objects.filter(next_run__lt=now - LATE).exclude(repeats=0)
    tasks = OrmQ.objects.filter(lock__lt=now - LATE)
    erased = now - LATE_JOB  # what is deleted is gone within an hour, unless there is very much of it
    spaces = Workspace.objects.filter(deleted_at__lt=erased)
    people = User.objects.filter(deleted_at__lt=erased)
    return [
        _counted(_("Tasks that wait for a worker"), tasks, "lock"),
        _counted(_("Scheduled work that is due"), schedules, "next_run"),
        _counted(_("Deleted workspaces that are not erased yet"), spaces, "deleted_at"),
        _counted(_("Deleted people who are not erased yet"), people, "deleted_at"),
        _counted(_("Documents that wait for a worker"), waiting, "changed_at"),
        _counted(_("Documents whose worker is gone"), left, "lease_until"),
        _counted(_("Jobs of more than an hour"), jobs, "created_at"),
        _counted(_("Turns whose process is silent"), turns, "heartbeat_at"),
    ]


def _counted(words: str, rows: QuerySet[Any], moment: str) -> Line:
    found = rows.aggregate(count=Count("pk"), since=Min(moment))
    return Line(words, found["count"], found["since"], bad=bool(found["count"]))


def _queue() -> list[Line]:
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), min(backend_start) FROM pg_stat_activity "
            "WHERE application_name = 'knowsphere-worker' AND datname = current_database()"
        )
        workers, started = cursor.fetchone()
    tasks = OrmQ.objects.aggregate(
        waiting=Count("pk", filter=Q(lock__lte=now)), taken=Count("pk", filter=Q(lock__gt=now))
    )
    failed = Failure.objects.filter(stopped__gt=now - timedelta(days=1))
    worst = failed.values("func").annotate(count=Count("pk")).order_by("-count", "func")[:SHOWN]
    done = Success.objects.filter(stopped__gt=now - timedelta(hours=1)).count()
    return [
        Line(_("Connections of workers"), workers, started, bad=not workers),
        Line(_("Tasks waiting"), tasks["waiting"]),
        Line(_("Tasks done in an hour"), done),
        Line(_("Tasks in hand"), tasks["taken"]),
        Line(_("Tasks failed in a day"), failed.count(), bad=failed.exists()),
        *(Line(f"– {row['func']}", row["count"], bad=True) for row in worst),
    ]


def _storage() -> list[Line]:
    if not settings.MEDIA_ROOT:
        return [Line(_("Bucket"), settings.STORAGES["default"]["OPTIONS"]["bucket_name"])]
    root = Path(settings.MEDIA_ROOT)
    disk = shutil.disk_usage(next(path for path in (root, *root.parents) if path.exists()))
    free = disk.free / disk.total
    return [
        Line(_("Free, in GB"), round(disk.free / 1e9, 1), bad=free < 0.05),
        Line(_("Of, in GB"), round(disk.total / 1e9, 1)),
    ]


def _database() -> list[Line]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), pg_database_size(current_database()), "
            "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()), "
            "current_setting('max_connections')::int"
        )
        version, size, used, most = cursor.fetchone()
    stored = Quota.objects.filter(kind=Quota.Kind.STORAGE, user=None).aggregate(all=Sum("used"))["all"]
    return [
        Line(_("Version"), version),
        Line(_("Size, in MB"), round(size / 1e6)),
        Line(_("Files of documents, in MB"), round((stored or 0) / 1e6)),
        Line(_("Connections"), f"{used} / {most}", bad=used > 0.8 * most),
    ]


def _calls() -> list[Line]:
    recent = UsageRecord.objects.filter(at__gt=timezone.now() - timedelta(hours=1))
    found = recent.aggregate(calls=Count("pk"), failed=Count("pk", filter=Q(outcome="failed")))
    bad = found["failed"] > 0.1 * found["calls"]
    failing = recent.filter(outcome="failed").values("kind").annotate(count=Count("pk")).order_by("-count")
    return [
        Line(_("Calls in an hour"), found["calls"]),
        Line(_("Of those, failed"), found["failed"], bad=bad),
        *(Line(f"– {Kind(row['kind']).label}", row["count"]) for row in failing),
    ]


def _notices() -> list[Line]:
    """Return what is shown now or later; never what it says, for that is long."""
    now = timezone.now()
    to_come = Notice.objects.to_come()
    return [
        Line(_("Notices shown now"), to_come.filter(begins_at__lte=now).count()),
        Line(_("Notices to come"), to_come.filter(begins_at__gt=now).count()),
    ]
