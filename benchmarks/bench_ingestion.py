"""Taking documents in, vectors given: CPU of our processes a document and stage, against the same rows by hand.

CPU is this process's and the sandbox's, not the database server's. The queue's own cost is not in it.
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.report import Ratio
from benchmarks.search_world import scratch_database

DOCUMENTS = 150
LARGE_BYTES = 8_000_000
VAST_BYTES = 100_000_000
MORE_BYTES = 2_000_000  # that come into a base whose vectors have an index
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
    """Return vectors that cost nothing, 4,096 different ones."""
    import numpy as np

    known = _pool(model.dimensions)
    return known[np.arange(len(drafts)) % len(known)]


@cache
def _pool(dimensions: int) -> Any:
    import numpy as np

    found = np.random.default_rng(1).normal(size=(4_096, dimensions)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def stored_ms(document: Any, index: Callable[[Any], None]) -> float:
    """Return milliseconds a chunk, from the Markdown to rows that are found: cut, posted, written."""
    from apps.knowledge.models import Chunk

    began = time.perf_counter()
    index(document)
    return (time.perf_counter() - began) * 1000 / Chunk.objects.filter(document=document).count()


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


def vast(add: Callable[[Any], Any], read: Callable[[Any], None], index: Callable[[Any], None]) -> float:
    """Return by how many MB this process grows that takes a text of 100 MB all the way. Before anything large."""
    from django.core.files import File

    part = text(7, 1_000_000)
    with tempfile.TemporaryFile() as file:
        for number in range(VAST_BYTES // len(part)):
            file.write(part.replace("Notice 7", f"Notice {number}").encode())
        document = add(File(file))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read(document)
    index(document)
    document.refresh_from_db()
    assert document.status == document.Status.INDEXED, document.error_code
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def run() -> list[Ratio]:
    """Return the ratios of small documents by stage, and of one large text."""
    from django.core.files.base import ContentFile
    from django.core.files.storage import default_storage

    from apps.knowledge import services
    from apps.knowledge.models import Chunk, ChunkVector, Document
    from apps.knowledge.retrieval import vector_indexes
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    with scratch_database("bench_ingestion"), tempfile.TemporaryDirectory() as folder:
        default_storage.location = folder  # type: ignore[attr-defined]
        person = User.objects.create_user("bench-ingestion@example.com")
        workspace = create_workspace(name="Bench", owner=person)
        base = services.create_knowledge_base(workspace=workspace, name="Bench", actor=person)

        numbers = count(1)

        def add(content: Any, where: Any = base) -> Document:
            file = ContentFile(content.encode()) if isinstance(content, str) else content
            name = f"notice-{next(numbers)}.md"  # as files that people have
            return services.add_document(knowledge_base=where, file=file, name=name, actor=person)

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
        apart = services.create_knowledge_base(workspace=workspace, name="Vast", actor=person)
        vast_mb = vast(partial(add, where=apart), read, index)
        large = add(text(7, LARGE_BYTES))
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        read(large)
        plain_ms = stored_ms(large, index)
        seconds = time.perf_counter() - began
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        large.refresh_from_db()
        assert large.status == Document.Status.INDEXED, large.error_code
        chunks = Chunk.objects.filter(document=large).count()
        assert vector_indexes.maintain(large=1_000, small=100).built
        more = add(text(8, MORE_BYTES))
        read(more)
        beside_ms = stored_ms(more, index)
        began = time.perf_counter()
        assert vector_indexes.maintain(large=1_000, small=100).built
        rebuilt_s = time.perf_counter() - began
        base.refresh_from_db()
        counted = ChunkVector.objects.filter(knowledge_base=base).count()
    total = sum(stages.values())
    return [
        Ratio("a 0.8 KB document", total, floor, "ms CPU", 10.0),
        *(Ratio(f"  of it: {name}", value, floor, "ms CPU", 5.0) for name, value in stages.items()),
        Ratio("a 0.8 KB document, against 8 ms", total, 8.0, "ms CPU", 1.0),
        Ratio("a chunk stored, against 1,000/s", plain_ms, 1.0, "ms", 1.0),
        Ratio("a chunk stored where vectors have an index, against 1,000/s", beside_ms, 1.0, "ms", 1.0),
        Ratio(
            f"  that index built again over {counted:,}, against 1,000/s", rebuilt_s * 1000 / counted, 1.0, "ms", 1.0
        ),
        Ratio("an 8 MB text read, cut and stored, against 1,000 chunks/s", seconds, chunks / 1_000, "s", 1.0),
        Ratio("an 8 MB text, memory added, against 100 MB", grown, 100.0, "MB", 1.0),
        Ratio("a 100 MB text read, cut and stored, memory added, against 100 MB", vast_mb, 100.0, "MB", 1.0),
    ]
