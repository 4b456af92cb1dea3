"""Taking documents in, vectors given: CPU of our processes a document and stage, against plain COPY of the same rows.

CPU is this process's and the sandbox's, not the database server's. The queue's own cost is not in it.
"""

import os
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.bench_search import scratch_database
from benchmarks.report import Ratio

DOCUMENTS = 150
LARGE_BYTES = 8_000_000
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


def plain_copy_ms(documents: Sequence[Any]) -> float:
    """Return CPU milliseconds a document for its rows alone, written by psycopg's own binary COPY."""
    from django.db import connection, transaction

    tables = {
        "knowledge_chunk": [
            *("uuid", "uuid", "uuid", "int4", "int2", "int4", "uuid", "text", "text", "int4", "int4", "int4", "int4")
        ],
        "knowledge_posting": ["uuid", "text", "uuid", "uuid", "float8"],
    }
    columns = {
        "knowledge_chunk": "id, knowledge_base_id, document_id, generation, level, ordinal, parent_id, text, heading,"
        ' page, page_end, start, "end"',
        "knowledge_posting": "knowledge_base_id, term, chunk_id, document_id, weight",
    }
    rows: list[dict[str, list[tuple[Any, ...]]]] = []
    with connection.cursor() as cursor:
        for document in documents:
            found = {}
            for table in tables:
                cursor.execute(f"SELECT {columns[table]} FROM {table} WHERE document_id = %s", [document.pk])
                found[table] = cursor.fetchall()
            cursor.execute("SELECT * FROM knowledge_chunkvector WHERE document_id = %s", [document.pk])
            rows.append(found)
        cursor.execute("CREATE TEMP TABLE vectors AS SELECT * FROM knowledge_chunkvector")
        for table in tables:
            cursor.execute(f"CREATE TEMP TABLE plain_{table} AS SELECT * FROM {table} LIMIT 0")

    def write(found: dict[str, list[tuple[Any, ...]]]) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            for table, types in tables.items():
                with cursor.copy(f"COPY plain_{table} ({columns[table]}) FROM STDIN (FORMAT binary)") as copy:
                    copy.set_types(types)
                    for row in found[table]:
                        copy.write_row(row)

    return spent_ms(write, rows)


def run() -> list[Ratio]:
    """Return the ratios of small documents by stage, and of one large text."""
    from django.core.files.base import ContentFile
    from django.core.files.storage import default_storage

    from apps.knowledge import services
    from apps.knowledge.models import Document
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    with scratch_database():
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
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
            floor = plain_copy_ms(documents)
            large = add(text(7, LARGE_BYTES))
            before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
            read(large)
            index(large)
            seconds = time.perf_counter() - began
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            large.refresh_from_db()
            assert large.status == Document.Status.INDEXED, large.error_code
    return [
        Ratio("a 0.8 KB document, CPU", sum(stages.values()), floor, "ms", 12.0),
        *(Ratio(f"  of it: {name}", value, floor, "ms", 6.0) for name, value in stages.items()),
        Ratio("a 0.8 KB document, CPU, against 8 ms", sum(stages.values()), 8.0, "ms", 1.0),
        Ratio("an 8 MB text, against 1 MB/s", seconds, LARGE_BYTES / 1e6, "s", 1.0),
        Ratio("an 8 MB text, memory added, against 100 MB", grown, 100.0, "MB", 1.0),
    ]
