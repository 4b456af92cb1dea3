"""The folder that holds files: what is new goes the short way, all else Django's."""

import stat
from io import BytesIO, StringIO

import pytest
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile, File
from django.core.files.uploadedfile import TemporaryUploadedFile

from apps.common.folder_storage import FolderStorage


@pytest.fixture
def store(tmp_path):
    return FolderStorage(
        location=str(tmp_path / "files"), file_permissions_mode=0o600, directory_permissions_mode=0o700
    )


def test_a_file_is_where_its_key_says_and_only_its_owner_reads_it(store, tmp_path):
    for key in ("documents/a/b/original", "documents/a/b/one.md", "documents/a/c/original"):  # folders of three depths
        assert store.save(key, ContentFile(key.encode())) == key
        assert store.open(key).read() == key.encode()
        path = tmp_path / "files" / key
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert {stat.S_IMODE(above.stat().st_mode) for above in list(path.parents)[:3]} == {0o700}


def test_a_key_that_is_taken_gives_another_and_nothing_is_overwritten(store):
    store.save("documents/a/original", ContentFile(b"first"))
    other = store.save("documents/a/original", ContentFile(b"second"))
    assert other != "documents/a/original"
    assert (store.open("documents/a/original").read(), store.open(other).read()) == (b"first", b"second")


def test_whatever_holds_content_is_stored_whole(store):
    large = b"x" * 300_000
    with TemporaryUploadedFile("a.bin", "", 0, "") as upload:
        upload.write(large)
        upload.seek(0)
        assert store.open(store.save("documents/a/upload", upload)).read() == large
    for key, content in (("bytes", BytesIO(large)), ("file", File(BytesIO(large))), ("text", StringIO("é"))):
        stored = store.open(store.save(f"documents/a/{key}", content)).read()
        assert stored == ("é".encode() if key == "text" else large)


def test_nothing_is_written_outside(store, tmp_path):
    for key in ("../out", "documents/../../out", str(tmp_path / "out")):
        with pytest.raises(SuspiciousFileOperation):
            store.save(key, ContentFile(b"x"))
    assert not (tmp_path / "out").exists()
