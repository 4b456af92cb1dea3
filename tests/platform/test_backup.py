"""A backup, restored elsewhere, is the same workspace: rows, passages, vectors, files."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import boto3
import psycopg
import pytest

from apps.common.database import conninfo
from tests.knowledge.test_object_storage import s3  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("backup")]
ROOT = Path(__file__).parents[2]
COUNTS = """
SELECT (SELECT count(*) FROM workspaces_user), (SELECT count(*) FROM knowledge_document),
       (SELECT count(*) FROM knowledge_chunk), (SELECT sum(vector_norm(embedding::vector)) FROM knowledge_chunkvector),
       (SELECT count(*) FROM knowledge_posting), (SELECT count(*) FROM django_migrations)
"""


@pytest.fixture(scope="module")
def databases(django_db_setup, django_db_blocker):
    """Databases of their own, gone afterwards."""
    names = [f"backup_{side}_{os.getpid()}" for side in ("from", "to", "bucket")]
    with django_db_blocker.unblock(), psycopg.connect(conninfo(), autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield names
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Place:
    """A database with a folder of files, and the commands on it."""

    def __init__(self, database, files, home):
        info = psycopg.conninfo.conninfo_to_dict(conninfo())
        where = f"host={info['host']}&port={info.get('port', 5432)}"
        self.conninfo = psycopg.conninfo.make_conninfo(conninfo(), dbname=database)
        self.files = files
        self.environment = {
            # a test that ran before may have made this process a "web" one
            **{name: value for name, value in os.environ.items() if name != "KNOWSPHERE_PROCESS"},
            "DATABASE_URL": f"postgresql://{info['user']}@/{database}?{where}",
            "STORAGE_URL": str(files),
            "KNOWSPHERE_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "knowsphere.settings",
        }

    def manage(self, *arguments, **more):
        command = [sys.executable, "manage.py", *map(str, arguments)]
        environment = {**self.environment, **more}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def counts(self):
        with psycopg.connect(self.conninfo) as connection:
            return connection.execute(COUNTS).fetchone()

    def contents(self):
        return {
            path.relative_to(self.files).as_posix(): path.read_bytes()
            for path in self.files.rglob("*")
            if path.is_file()
        }


@pytest.fixture(scope="module")
def here(databases, tmp_path_factory):
    """The sample workspace, its files in a folder."""
    folder = tmp_path_factory.mktemp("backup")
    place = Place(databases[0], folder / "here", folder / "home")
    made = place.manage("setup")
    assert made.returncode == 0, made.stderr
    return place


@pytest.fixture(scope="module")
def archive(here, tmp_path_factory):
    """A backup of it."""
    target = tmp_path_factory.mktemp("archive") / "backup.tar"
    done = here.manage("backup", target)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.slow
def test_round_trip(here, archive, databases, tmp_path):
    there = Place(databases[1], tmp_path / "there", here.environment["KNOWSPHERE_HOME"])
    assert archive.stat().st_mode & 0o777 == 0o600
    assert here.manage("backup", archive).returncode != 0  # never over another

    other = there.manage("restore", archive, MASTER_KEY="QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")
    assert "another MASTER_KEY" in other.stderr
    done = there.manage("restore", archive)
    assert done.returncode == 0, done.stderr
    assert there.counts() == here.counts()
    assert here.counts()[2] > 0
    assert there.contents() == here.contents() != {}

    again = there.manage("restore", archive)
    assert "say --replace" in again.stderr
    (there.files / "stray").write_text("x")
    assert there.manage("restore", archive, "--replace").returncode == 0
    assert there.contents() == here.contents()
    found = there.manage("search", "How do I invite people?", "--kb", "KnowSphere guide", "--json", "--top-k", "3")
    assert '"hits": [{' in found.stdout, found.stderr

    with psycopg.connect(there.conninfo, application_name="knowsphere-web"):
        assert "Stop these first" in there.manage("restore", archive, "--replace").stderr
    broken = tmp_path / "broken.tar"
    broken.write_bytes(archive.read_bytes()[:2000])
    before = there.counts()
    assert there.manage("restore", broken, "--replace").returncode != 0
    assert there.counts() == before


class BucketPlace(Place):
    """A database whose files are in a bucket, below a prefix."""

    def __init__(self, database, s3, home):  # noqa: F811
        super().__init__(database, "", home)
        self.environment["STORAGE_URL"] = f"s3://key:secret@backup/kept/here?endpoint={s3}"
        self.client = boto3.client(
            "s3", endpoint_url=s3, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1"
        )

    def contents(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="backup", Prefix="kept/here/")
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return {
            key.removeprefix("kept/here/"): self.client.get_object(Bucket="backup", Key=key)["Body"].read()
            for key in keys
        }


def files_of(archive):
    with tarfile.open(archive) as tar:
        return {
            member.name.removeprefix("files/"): tar.extractfile(member).read()
            for member in tar
            if member.name.startswith("files/")
        }


@pytest.mark.slow
def test_round_trip_through_a_bucket(here, archive, databases, tmp_path, s3):  # noqa: F811
    """From a folder into a bucket, out of it, and back into it where it was damaged meanwhile."""
    place = BucketPlace(databases[2], s3, here.environment["KNOWSPHERE_HOME"])
    place.client.create_bucket(Bucket="backup")
    place.client.put_object(Bucket="backup", Key="elsewhere/other.md", Body=b"not ours")
    done = place.manage("restore", archive)
    assert done.returncode == 0, done.stderr
    kept, rows = here.contents(), here.counts()
    assert (place.contents(), place.counts()) == (kept, rows)
    second = tmp_path / "second.tar"
    done = place.manage("backup", second)
    assert done.returncode == 0, done.stderr
    assert files_of(second) == kept != {}

    lost, changed, *_ = sorted(kept)
    place.client.delete_object(Bucket="backup", Key=f"kept/here/{lost}")
    place.client.put_object(Bucket="backup", Key=f"kept/here/{changed}", Body=b"something else")
    with psycopg.connect(place.conninfo) as connection:
        connection.execute("DELETE FROM knowledge_chunkvector")
    done = place.manage("restore", second, "--replace")
    assert done.returncode == 0, done.stderr
    assert (place.contents(), place.counts()) == (kept, rows)

    nowhere = place.environment["STORAGE_URL"].replace("@backup/", "@missing/")
    refused = place.manage("restore", second, "--replace", STORAGE_URL=nowhere)
    assert refused.returncode != 0
    assert "The database is restored, but not all files" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert place.manage("backup", tmp_path / "none.tar", STORAGE_URL=nowhere).returncode != 0
    assert not (tmp_path / "none.tar").exists()


def test_a_file_that_goes_while_it_is_written_leaves_the_archive_whole(tmp_path, monkeypatch, settings):
    """Of an object store the bytes come with the first read, after its size was told."""
    from django.core.files.base import ContentFile, File

    from apps.common import backup

    class Gone(File):
        @property
        def file(self):
            raise FileNotFoundError

        size = 1_000

        def close(self):
            pass

    class Store:
        def listdir(self, folder):
            return [], ["a", "b", "c"]

        def open(self, key, mode):
            return Gone.__new__(Gone) if key == "b" else ContentFile(key.encode() * 10)

    settings.MEDIA_ROOT = ""
    monkeypatch.setattr(backup, "default_storage", Store())
    with tarfile.open(tmp_path / "some.tar", "w") as archive:
        assert backup._add_files(archive) == 2
    assert files_of(tmp_path / "some.tar") == {"a": b"a" * 10, "c": b"c" * 10}
