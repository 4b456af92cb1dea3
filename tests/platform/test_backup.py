"""A backup, restored elsewhere, is the same workspace: rows, passages, vectors, files."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from apps.common.database import conninfo

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("backup")]
ROOT = Path(__file__).parents[2]
COUNTS = """
SELECT (SELECT count(*) FROM workspaces_user), (SELECT count(*) FROM knowledge_document),
       (SELECT count(*) FROM knowledge_chunk), (SELECT sum(vector_norm(embedding::vector)) FROM knowledge_chunkvector),
       (SELECT count(*) FROM knowledge_posting), (SELECT count(*) FROM django_migrations)
"""


@pytest.fixture(scope="module")
def databases(django_db_setup, django_db_blocker):
    """Two databases of their own, gone afterwards."""
    names = [f"backup_{side}_{os.getpid()}" for side in ("from", "to")]
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


@pytest.mark.slow
def test_round_trip(databases, tmp_path):
    here = Place(databases[0], tmp_path / "here", tmp_path / "home")
    there = Place(databases[1], tmp_path / "there", tmp_path / "home")
    made = here.manage("setup")
    assert made.returncode == 0, made.stderr
    archive = tmp_path / "backup.tar"
    done = here.manage("backup", archive)
    assert done.returncode == 0, done.stderr
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
