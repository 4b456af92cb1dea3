"""A disk that is full, of files or of the database: nothing is half there, and it is said."""

import errno
import resource
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django_q.models import OrmQ

from apps.common.folder_storage import FolderStorage
from apps.knowledge import services
from apps.knowledge.errors import NoSpace, StorageFailed
from apps.knowledge.models import Document
from apps.knowledge.services.ingestion import index_document, parse_document
from tests.knowledge.test_ingestion import GUIDE, rows

Status = Document.Status


@pytest.fixture
def little_room(monkeypatch):
    """Let the store write no file beyond 64 KB: the system keeps what fitted, as a full disk does."""
    save = FolderStorage.save

    def limited(self, name, content, max_length=None):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
        try:
            return save(self, name, content, max_length)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return lambda: monkeypatch.setattr(FolderStorage, "save", limited)


def stored_files():
    root = Path(default_storage.location)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_half_an_original_is_not_left(add, little_room):
    before = stored_files()
    little_room()
    with pytest.raises(StorageFailed):
        add("word " * 100_000)
    assert stored_files() == before


def test_half_a_markdown_is_not_left(add, embedder, little_room):
    document = add("word " * 100_000)
    before = stored_files()
    little_room()
    parse_document(document=document)
    assert (document.status, document.error_code) == (Status.ERROR_PARSING, "storage_failed")
    assert stored_files() == before


def test_a_full_disk_at_the_upload_leaves_nothing(add, monkeypatch):
    def full(self, name, content, max_length=None):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FolderStorage, "save", full)
    with pytest.raises(NoSpace):
        add(GUIDE)
    assert not Document.objects.exists()
    assert not OrmQ.objects.exists()


def test_a_full_disk_while_reading_is_said_and_can_be_tried_again(add, embedder, monkeypatch):
    document = add(GUIDE)

    def full(self, name, content, max_length=None):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(FolderStorage, "save", full)
        parse_document(document=document)
    assert (document.status, document.error_code, document.parsed) == (Status.ERROR_PARSING, "no_space", {})
    services.retry_document(document=document, actor=None)
    assert services.ingest_document(document.pk) == Status.INDEXED


def test_a_full_disk_of_the_database_keeps_the_old_generation(ingest):
    from django.db import connection

    document = ingest(GUIDE)
    before, key = rows(document), document.markdown_key
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;"
            "CREATE TRIGGER full_disk BEFORE INSERT ON knowledge_posting EXECUTE FUNCTION full_disk()"
        )
    index_document(document=document)
    assert (document.status, document.error_code) == (Status.ERROR_INDEXING, "no_space")
    document.refresh_from_db()
    assert (document.status, document.generation, rows(document)) == (Status.ERROR_INDEXING, 1, before)
    assert default_storage.exists(key)
