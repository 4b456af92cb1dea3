"""Files in a bucket: everything that works with a folder, against a real S3 server."""

import re
import socket
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.storage.handler import StorageHandler
from django.urls import reverse
from django.utils import timezone

from apps.knowledge import services
from apps.knowledge.ending import export
from apps.knowledge.errors import NoSpace, StorageFailed
from apps.knowledge.models import Document, DocumentImage
from apps.knowledge.services import sweeping
from apps.knowledge.services.sweeping import erase_deleted, sweep_files
from knowsphere import environment
from tests.knowledge.files import p
from tests.knowledge.test_illustrations import PLAIN, blip, run, word

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("object_storage")]
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
KEY = re.compile(rf"kept/documents/{UUID}/{UUID}/(original|[0-9a-f]{{32}}\.(md|jpeg))")


class Bucket:
    """A bucket of the server, empty."""

    def __init__(self, storage):
        self.storage = storage
        self.client = storage.connection.meta.client

    def stored(self):
        listed = self.client.list_objects_v2(Bucket=self.storage.bucket_name)
        return sorted(entry["Key"] for entry in listed.get("Contents", []))

    def drop(self):
        """Take the bucket away with all in it."""
        for key in self.stored():
            self.client.delete_object(Bucket=self.storage.bucket_name, Key=key)
        self.client.delete_bucket(Bucket=self.storage.bucket_name)


@pytest.fixture(scope="module")
def s3():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.kill()
    server.wait()


@pytest.fixture
def bucket(s3, monkeypatch, tmp_path):
    """Files go into a bucket, as STORAGE_URL says, under a prefix."""
    monkeypatch.setenv("STORAGE_URL", f"s3://key:se%2Fcret@knowsphere/kept?endpoint={s3}")
    chosen = environment.storage("STORAGE_URL", tmp_path)
    storage = StorageHandler({"default": chosen})["default"]
    assert (storage.access_key, storage.secret_key) == ("key", "se/cret")
    storage.connection.create_bucket(Bucket="knowsphere")
    monkeypatch.setattr(default_storage, "_wrapped", storage)
    found = Bucket(storage)
    yield found
    if storage.bucket in storage.connection.buckets.all():
        found.drop()


def body(response):
    return b"".join(response)


def test_a_document_with_a_picture_lives_and_dies_in_the_bucket(bucket, ingest, client, ann, mal, acme, monkeypatch):
    content = word(p("Before the square.") + run(blip("red", "A red square")), red=PLAIN)
    document = ingest(content, "合同 plan.docx")
    assert (document.status, document.error_code) == ("indexed", "")
    assert len(bucket.stored()) == 3
    assert all(KEY.fullmatch(key) for key in bucket.stored()), bucket.stored()

    image = DocumentImage.objects.get(document=document)
    original = reverse("knowledge:download-original", args=[acme.slug, document.pk])
    picture = reverse("knowledge:show-picture", args=[acme.slug, document.pk, image.name])
    page = reverse("knowledge:show-document", args=[acme.slug, document.pk])
    client.force_login(ann)
    assert body(client.get(original)) == content
    assert body(client.get(picture))[:2] == b"\xff\xd8"
    shown = client.get(page).content.decode()
    assert "Before the square." in shown
    assert "127.0.0.1" not in shown  # nobody is given an address of the store
    client.force_login(mal)
    assert {client.get(address).status_code for address in (original, picture, page)} == {404}

    exported = {path: b"".join(pieces) for path, pieces in export(acme, ann)}
    assert exported[f"documents/{document.pk}/original"] == content
    assert b"Before the square." in exported[f"documents/{document.pk}/text.md"]

    services.reparse_document(document=document, actor=ann)
    assert services.ingest_document(document.pk) == "indexed"
    assert len(bucket.stored()) == 3  # of the generation that answers alone
    orphan = default_storage.save(f"{sweeping.folder_of(document)}/{'0' * 32}.md", ContentFile(b"left"))
    monkeypatch.setattr(sweeping, "ORPHAN_AFTER", timedelta(hours=-1))
    assert sweep_files() == 1
    assert not default_storage.exists(orphan)

    services.delete_document(document=document, actor=ann)
    Document.objects.update(deleted_at=timezone.now() - timedelta(seconds=11))
    assert erase_deleted() == 1
    assert bucket.stored() == []


def test_what_the_store_lost_is_read_again_or_said(bucket, ingest, client, ann, acme):
    document = ingest("# Heating\n\nIt is off in summer.")
    default_storage.delete(document.markdown_key)
    services.reindex_document(document=document, actor=ann)
    assert services.ingest_document(document.pk) == "uploaded"  # back to be read
    assert services.ingest_document(document.pk) == "indexed"
    default_storage.delete(document.file.name)
    client.force_login(ann)
    assert client.get(reverse("knowledge:download-original", args=[acme.slug, document.pk])).status_code == 422
    services.reparse_document(document=document, actor=ann)
    assert services.ingest_document(document.pk) == "error_parsing"
    document.refresh_from_db()
    assert document.error_code == "original_missing"


def test_an_outage_is_said_and_nothing_is_half_there(bucket, add, ingest, client, ann, acme, handbook):
    document = ingest("# Heating\n\nIt is off in summer.")
    bucket.drop()
    with pytest.raises(StorageFailed):
        add("Never stored.", "other.md")
    assert Document.objects.get() == document
    client.force_login(ann)
    for name in ("download-original", "show-document"):
        assert client.get(reverse(f"knowledge:{name}", args=[acme.slug, document.pk])).status_code == 503
    services.reparse_document(document=document, actor=ann)
    assert services.ingest_document(document.pk) == "error_parsing"
    document.refresh_from_db()
    assert (document.error_code, document.generation) == ("storage_failed", 1)


def test_a_full_store_is_no_space(bucket, add, monkeypatch):
    from botocore.exceptions import ClientError

    def full(self, *args, **kwargs):
        answer = {"Error": {"Code": "XMinioStorageFull"}, "ResponseMetadata": {"HTTPStatusCode": 507}}
        raise ClientError(answer, "PutObject")

    monkeypatch.setattr("storages.backends.s3.S3Storage._save", full)
    with pytest.raises(NoSpace):
        add("Too much.", "other.md")
