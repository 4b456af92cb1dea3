"""A key that must be seen nowhere: watched in every response and log of a whole run, and in all that PostgreSQL wrote.

The scripted vendor's key is the canary; it may stand in the header of a request to the vendor and, encrypted, in one
column. Rows that tests roll back are found as well, since the server's log of writes has them too.
"""

import logging
import mmap
from pathlib import Path

import pytest
from asgiref.sync import iscoroutinefunction, markcoroutinefunction

from tests.vendor.plugin import CANARY

found: list[str] = []


class LogWatch(logging.Handler):
    """Looks at every record as it would be written, its traceback too."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # a record that cannot be written is somebody else's fault
            return
        if CANARY in line:
            found.append(f"a log of {record.name}")


class ResponseWatch:
    """Middleware around all others: looks at every response of pages and of the API."""

    sync_capable = async_capable = True

    def __init__(self, get_response):
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request):
        if iscoroutinefunction(self):
            return self._later(request)
        return self._looked_at(request, self.get_response(request))

    async def _later(self, request):
        return self._looked_at(request, await self.get_response(request))

    def _looked_at(self, request, response):
        shown = b"" if response.streaming else response.content
        if CANARY.encode() in shown or CANARY in str(dict(response.headers)):
            found.append(f"the response of {request.method} {request.path}")
        return response


@pytest.fixture(autouse=True, scope="session")
def _watch_logs():
    watch = LogWatch()
    logging.getLogger().addHandler(watch)
    yield
    logging.getLogger().removeHandler(watch)


@pytest.fixture(autouse=True)
def _no_canary():
    """Fail the test in which the canary was seen."""
    found.clear()
    yield
    assert not found


def pytest_sessionfinish(session):
    """Look through all that the run's PostgreSQL wrote; once, by the process that started the others."""
    if hasattr(session.config, "workerinput"):
        return
    files = written_with_canary()
    if files:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nA key stands unencrypted in what PostgreSQL wrote: {', '.join(map(str, files))}")


def written_with_canary() -> list[Path]:
    """Return the files of the server's data folder that hold the canary: rows, indexes, and the log of writes."""
    folder = data_folder(written=True)
    return [path for path in folder.rglob("*") if path.is_file() and _holds(path)] if folder else []


def is_written(text: str) -> bool:
    """Return whether the server's log of writes has a text of late: of all tables, rolled back or not."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_switch_wal()")  # writes the log out, as a checkpoint does, and nothing else
    folder = data_folder()
    return any(_holds(path, text) for path in (folder / "pg_wal").iterdir() if path.is_file()) if folder else False


def data_folder(*, written: bool = False) -> Path | None:
    """Return where the server of this run keeps its data, all of it ``written`` out; None if not ours, or not here."""
    import psycopg

    from apps.common.database import conninfo

    try:
        with psycopg.connect(conninfo(), dbname="postgres", connect_timeout=5, autocommit=True) as connection:
            if written:
                connection.execute("CHECKPOINT")
            row = connection.execute("SHOW data_directory").fetchone()
    except psycopg.Error:
        return None
    folder = Path(row[0]) if row else None
    return folder if folder and folder.is_dir() else None


def _holds(path: Path, text: str = CANARY) -> bool:
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return data.find(text.encode()) >= 0
    except (OSError, ValueError):  # taken away meanwhile
        return False
