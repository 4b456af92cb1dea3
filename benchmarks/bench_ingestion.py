"""Taking documents in, vectors given: CPU of our processes a document and stage, against the same rows by hand.

CPU is this process's and the sandbox's, not the database server's. The queue's own cost is not in it.
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.bench_search import scratch_database
from benchmarks.report import Ratio

DOCUMENTS = 150
LARGE_BYTES = 8_000_000
COPIED = ("knowledge_chunk", "knowledge_chunkvector", "knowledge_posting")
TEXT = (
    "the heating of the house is switched on in October and off again in April unless the council decides otherwise "
    "after a warm spring or a cold one so that nobody has to wear a coat at the table"
)
WORDS = TEXT.split()


def text(number: int, size: int) -> str:
    """Return a document of about that many characters, different for each number."""
    parts, length, at = [f"# Notice {number}\n\n"], 0, number
    while length < size:
        sentence = " ".join(WORDS[(at * 7 + place) % len(WORDS)] for place in range(12)) + f" {at}. "
        parts.append(sentence + ("\n\n" if at % 5 == 0 else ""))
        length += len(sentence)
        at += 1
    return "".join(parts)


def given(work: Any, drafts: Sequence[Any], model: Any) -> Any:
    """Return vectors that cost nothing."""
    import numpy as np

    vectors = np.zeros((len(drafts), model.dimensions), dtype=np.float32)
    vectors[:, 0] = 1.0
    return vectors


def cpu_s() -> float:
    """Return CPU seconds of this process and of its sandbox so far."""
    import psutil

    own = time.process_time()
    for child in psutil.Process(os.getpid()).children(recursive=True):
        spent = child.cpu_times()
        own += spent.user + spent.system
    return own


def spent_ms(work: Callable[[Any], object], things: Sequence[Any]) -> float:
    """Return CPU milliseconds a thing."""
    began = cpu_s()
    for thing in things:
        work(thing)
    return (cpu_s() - began) * 1000 / len(things)


def by_hand_ms(documents: Sequence[Any], contents: Sequence[str], folder: str) -> float:
    """Return CPU milliseconds a document for the same rows, state changes and files, written by hand in SQL.

    Into tables of the same columns, through the same connection: an insert with its queue row, two
    claims and an end in updates, and one transaction with three of psycopg's own binary COPYs.
    """
    from django.db import connection, transaction

    rows: list[tuple[Any, str, dict[str, list[tuple[Any, ...]]]]] = []
    names: dict[str, str] = {}
    with connection.cursor() as cursor:
        for table in ("knowledge_document", *COPIED):
            cursor.execute(f"CREATE TEMP TABLE plain_{table} AS SELECT * FROM {table} LIMIT 0")
            cursor.execute(f"SELECT * FROM {table} LIMIT 0")
            names[table] = ", ".join(f'"{column.name}"' for column in cursor.description)
        for document, content in zip(documents, contents, strict=True):
            found = {}
            for table in COPIED:
                value = names[table].replace('"embedding"', "embedding::text")
                cursor.execute(f"SELECT {value} FROM {table} WHERE document_id = %s", [document.pk])
                found[table] = cursor.fetchall()
            rows.append((document, content, found))

    def write(row: tuple[Any, str, dict[str, list[tuple[Any, ...]]]]) -> None:
        document, content, found = row
        key = f"{folder}/{document.pk}"
        Path(f"{key}.original").write_text(content)
        Path(f"{key}.md").write_text(content)
        with connection.cursor() as cursor:
            with transaction.atomic():
                cursor.execute(
                    "INSERT INTO plain_knowledge_document (id, workspace_id, knowledge_base_id, name, sha256, status)"
                    " VALUES (%s, %s, %s, %s, %s, 'uploaded')",
                    [document.pk, document.workspace_id, document.knowledge_base_id, document.name, document.sha256],
                )
                cursor.execute(
                    "INSERT INTO django_q_ormq (key, payload, lock) VALUES ('bench', %s, now())", [str(document.pk)]
                )
            for before, after in (("uploaded", "parsing"), ("parsing", "parsed"), ("parsed", "indexing")):
                cursor.execute(
                    "UPDATE plain_knowledge_document SET status = %s, changed_at = now() WHERE id = %s AND status = %s",
                    [after, document.pk, before],
                )
            with transaction.atomic():
                cursor.execute("UPDATE plain_knowledge_document SET status = 'indexed' WHERE id = %s", [document.pk])
                for table in COPIED:
                    with cursor.copy(f"COPY plain_{table} ({names[table]}) FROM STDIN") as copy:
                        for values in found[table]:
                            copy.write_row(values)

    return spent_ms(write, rows)


def run() -> list[Ratio]:
    """Return the ratios of small documents by stage, and of one large text."""
    from django.core.files.base import ContentFile
    from django.core.files.storage import default_storage

    from apps.knowledge import services
    from apps.knowledge.models import Document
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    with scratch_database(), tempfile.TemporaryDirectory() as folder:
        default_storage.location = folder  # type: ignore[attr-defined]
        person = User.objects.create_user("bench-ingestion@example.com")
        workspace = create_workspace(name="Bench", owner=person)
        base = services.create_knowledge_base(workspace=workspace, name="Bench", actor=person)

        def add(content: str) -> Document:
            file = ContentFile(content.encode())
            return services.add_document(knowledge_base=base, file=file, name="notice.md", actor=person)

        def read(document: Document) -> None:
            services.parse_document(document=document)

        def index(document: Document) -> None:
            services.index_document(document=document, embed=given)

        warm = add(text(1_000_000, 800))
        read(warm)
        index(warm)
        contents = [text(number, 800) for number in range(DOCUMENTS)]
        documents: list[Document] = []
        stages = {
            "stored and queued": spent_ms(lambda content: documents.append(add(content)), contents),
            "read": spent_ms(read, documents),
            "cut and indexed": spent_ms(index, documents),
        }
        floor = by_hand_ms(documents, contents, folder)
        large = add(text(7, LARGE_BYTES))
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        read(large)
        index(large)
        seconds = time.perf_counter() - began
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        large.refresh_from_db()
        assert large.status == Document.Status.INDEXED, large.error_code
    total = sum(stages.values())
    return [
        Ratio("a 0.8 KB document", total, floor, "ms CPU", 10.0),
        *(Ratio(f"  of it: {name}", value, floor, "ms CPU", 5.0) for name, value in stages.items()),
        Ratio("a 0.8 KB document, against 8 ms", total, 8.0, "ms CPU", 1.0),
        Ratio("an 8 MB text, against 1 MB/s", seconds, LARGE_BYTES / 1e6, "s", 1.0),
        Ratio("an 8 MB text, memory added, against 100 MB", grown, 100.0, "MB", 1.0),
    ]
