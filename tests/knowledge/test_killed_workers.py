"""A worker that is killed with SIGKILL, at each point of its work: nothing is lost, nothing is half there."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict

from apps.common.database import conninfo
from apps.knowledge import services
from apps.knowledge.models import Chunk, ChunkVector, Document, Posting
from tests.knowledge.files import docx, p
from tests.knowledge.test_ingestion import GUIDE, rows
from tests.vendor import Reply

pytestmark = pytest.mark.django_db(transaction=True)

WORK = """
import sys
from uuid import UUID
import django
from django.conf import settings
django.setup()
from django.core.files.storage import default_storage
default_storage.location = sys.argv[2]
settings.EMBEDDING_MODEL, settings.EMBEDDING_API_KEY = "scripted-embedding", "key"
settings.EMBEDDING_BASE_URL = sys.argv[3]
from apps.knowledge import services
services.ingest_document(UUID(sys.argv[1]))
"""


@pytest.fixture
def worker(embedder):
    """Start a process that works on a document; it is killed at the end at the latest."""
    from django.core.files.storage import default_storage

    running = []

    def worker(document):
        parts = conninfo_to_dict(conninfo())
        address = f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}&port={parts['port']}"
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "knowsphere.settings", "DATABASE_URL": address}
        arguments = [sys.executable, "-c", WORK, str(document.pk), default_storage.location, embedder.url]
        running.append(subprocess.Popen(arguments, env=environment))
        return running[-1]

    yield worker
    for process in running:
        process.kill()
        process.wait()


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stage(document):
    document.refresh_from_db()
    return document.status, document.stage


def recover(document):
    """Let the lease run out, as a minute does, and take the document up again."""
    assert services.sweep()["recovered"] == 0
    Document.objects.filter(lease_until__isnull=False).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert services.sweep()["recovered"] == 1
    assert services.ingest_document(document.pk) == Document.Status.INDEXED
    document.refresh_from_db()
    return document


def test_killed_while_reading(add, worker):
    document = add(docx(p("some text") * 400_000), "long.docx")
    process = worker(document)
    until(lambda: stage(document) == ("parsing", "reading"))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    Document.objects.filter(pk=document.pk).update(content_type="text/plain")
    document.refresh_from_db()
    with document.file.storage.open(document.file.name, "wb") as original:
        original.write(GUIDE.encode())
    assert recover(document).generation == 1


def test_killed_while_embedding(add, worker, embedder):
    import threading

    document, asked, never = add(GUIDE), threading.Event(), threading.Event()

    def answer(request):
        if len(request.body["input"]) > 1:
            asked.set()
            return Reply(hold=never)
        return Reply()

    embedder.otherwise = answer
    process = worker(document)
    assert asked.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    never.set()
    embedder.reset()
    assert rows(document) == (0, 0, 0)
    assert recover(document).interruptions == 0


def test_killed_in_the_last_write(add, worker):
    document = add(GUIDE)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {Posting._meta.db_table} IN EXCLUSIVE MODE")
        process = worker(document)
        blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"

        def waits():
            with connection.cursor() as cursor:
                cursor.execute(blocked, [Posting._meta.db_table])
                return cursor.fetchone()[0]

        until(waits)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: not _open_transactions())
    assert (stage(document)[0], rows(document)) == ("indexing", (0, 0, 0))
    recover(document)
    assert Chunk.objects.count() == ChunkVector.objects.count() == rows(document)[0]


def _open_transactions():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND state <> 'idle'"
        )
        return cursor.fetchone()[0]
