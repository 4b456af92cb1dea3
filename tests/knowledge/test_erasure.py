"""A canary in a document: after its deletion no reader finds it, after its erasure nothing holds it."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.utils import timezone

from apps.knowledge import services
from apps.knowledge.models import Chunk, ChunkOverride, Document, StagedVector
from apps.knowledge.retrieval.reading import document_info, grep_chunks, list_chunks
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import sweeping
from apps.knowledge.services.ingestion import index_document
from apps.knowledge.services.sweeping import erase_deleted
from apps.workspaces.models import Quota

CANARY = "zanzibarcanary"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def canary(ingest, embedder):
    """A document of two generations that says CANARY wherever it can."""
    text = "\n\n".join(f"## Part {at}\n\nThe {CANARY} sings its song number {at}. " * 9 for at in range(4))
    document = ingest(text, f"{CANARY}.md")
    first = Chunk.objects.filter(document=document, level=0).earliest("ordinal")
    ChunkOverride.objects.create(
        document=document, content_hash=first.content_hash, original=first.text, text=f"{CANARY} said otherwise."
    )
    index_document(document=document)
    StagedVector.objects.create(document=document, key=first.pk, embedding=[0.5] * 16)
    return document


@pytest.fixture
def chunk_ids(canary):
    return list(Chunk.objects.filter(document=canary).values_list("pk", flat=True))


async def found(user, document, base, chunk_ids):
    """What each reader of the knowledge base, and so each tool, gives of the canary."""
    hits = await search(user, CANARY, knowledge_bases=[base.pk], top_k=10)
    return {
        "search": len(hits.passages),
        "grep": len(await grep_chunks(user, CANARY, knowledge_bases=[base.pk])),
        "list": len(await list_chunks(user, document_id=document.pk)),
        "ids": len(await list_chunks(user, chunk_ids=chunk_ids)),
        "info": len(await document_info(user, document_ids=[document.pk])),
    }


@pytest.fixture
def hide(canary, ann):
    return lambda: services.delete_document(document=canary, actor=ann)


async def test_no_reader_finds_it_from_the_moment_it_is_deleted(canary, chunk_ids, handbook, ann, hide):
    from apps.common.database import in_db

    assert all((await found(ann, canary, handbook, chunk_ids)).values())
    await in_db(hide)
    assert not any((await found(ann, canary, handbook, chunk_ids)).values())


LOG = "workspaces_auditevent"  # keeps who added and deleted what, by id and name, until its retention ends


def rows_with_it():
    """Return the tables of which any row, as text, has the canary or the document's id in it."""
    document = Document.objects.first()
    marks = [CANARY, *([str(document.pk)] if document else [])]
    found = set()
    with connection.cursor() as cursor:
        for table in set(connection.introspection.table_names(cursor)) - {LOG}:
            for mark in marks:
                cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{mark}%"])
                if cursor.fetchone()[0]:
                    found.add(table)
    return found


def files_with_it(workspace):
    folder = Path(default_storage.location) / "documents" / str(workspace.pk)
    return [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_nothing_holds_it_once_it_is_erased(canary, acme, ann, hide):
    before = rows_with_it()
    assert before >= {f"knowledge_{name}" for name in ("document", "chunk", "chunkvector", "posting", "stagedvector")}
    assert len(files_with_it(acme)) == 2
    hide()
    Document.objects.update(deleted_at=timezone.now() - timedelta(seconds=11))
    pk = str(canary.pk)
    assert erase_deleted() == 1
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_q_ormq")  # turns name the document for which they were queued
    assert rows_with_it() == set()
    assert files_with_it(acme) == []
    with connection.cursor() as cursor:
        for table in set(connection.introspection.table_names(cursor)) - {LOG}:
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{pk}%"])
            assert (table, cursor.fetchone()[0]) == (table, 0)


def test_undo_while_the_sweeper_is_at_it_wins(add, ann, acme, monkeypatch):
    """The sweeper's list is older than the Undo: each document is asked again, under a lock, and counted back once."""
    kept, gone = add("Kept.", "kept.txt"), add("Gone.", "gone.txt")
    for document in (kept, gone):
        services.delete_document(document=document, actor=ann)
    Document.objects.update(deleted_at=timezone.now() - timedelta(seconds=11))
    whole = sweeping._erase_document

    def late(rows):
        if rows.filter(pk=kept.pk).exists():
            services.restore_document(document=kept, actor=ann)
        done = whole(rows)
        assert not whole(rows)  # another sweeper finds nothing to erase, and gives nothing back
        return done

    monkeypatch.setattr(sweeping, "_erase_document", late)
    assert erase_deleted() == 1
    assert Document.objects.get() == kept
    assert Path(kept.file.path).exists()
    used = Quota.objects.get(workspace=acme, user=None, kind="storage").used
    assert used == kept.size_bytes
