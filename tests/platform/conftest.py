"""State folders of their own, and processes that run in them."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from knowsphere import environment, postgres, postgres_files

NOBODY = 65534
OURS = (
    "DJANGO_SETTINGS_MODULE",
    "KNOWSPHERE_PROCESS",
    "DATABASE_URL",
    "SECRET_KEY",
    "MASTER_KEY",
    "ENVIRONMENT",
    "PORT",
    "HOST",
    "SITE_URL",
    "KNOWSPHERE_HOME",
)
HOLD = """
import sys
from knowsphere import postgres
postgres.hold()
print("held", flush=True)
sys.stdin.read()
"""


def become(user: int | None) -> list[str]:
    """Return the words before a command that make it run as a plain user.

    It may read everything, since a test's Python can lie under a private home; it owns and may
    write only what is its own, which is what matters here.
    """
    if user is None:
        return []
    reading = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *reading]


class Home:
    """A state folder, and processes of a user in it."""

    def __init__(self, path: Path, user: int | None = None) -> None:
        self.path = path
        self.user = user
        self.processes: list[subprocess.Popen[str]] = []

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.removesuffix("_FILE") not in OURS}
        return {**kept, "KNOWSPHERE_HOME": str(self.path), "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1", **more}

    def popen(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """Start Python with these arguments in the checkout."""
        process = subprocess.Popen(
            [*become(self.user), sys.executable, *arguments],
            cwd=environment.CHECKOUT,
            env=self.environment(**more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self, *arguments: str, wait_s: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments to its end."""
        process = self.popen(*arguments, **more)
        out, err = process.communicate(timeout=wait_s)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def hold(self) -> subprocess.Popen[str]:
        """Start a process that holds the server until its input ends."""
        process = self.popen("-c", HOLD)
        if process.stdout.readline() != "held\n":
            pytest.fail(process.communicate()[1])
        return process

    @staticmethod
    def let_go(process: subprocess.Popen[str]) -> None:
        process.communicate("", timeout=60)
        assert process.returncode == 0

    @property
    def cluster(self) -> postgres.Cluster:
        before = os.environ.get("KNOWSPHERE_HOME")
        os.environ["KNOWSPHERE_HOME"] = str(self.path)
        try:
            return postgres.cluster()
        finally:
            if before is None:
                del os.environ["KNOWSPHERE_HOME"]
            else:
                os.environ["KNOWSPHERE_HOME"] = before

    def query(self, sql: str, database: str = "knowsphere"):
        """Run one statement; return its first value, or None."""
        with psycopg.connect(
            host=str(self.cluster.socket), port=postgres.PORT, user="postgres", dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchone()[0] if cursor.description else None

    @property
    def postmaster(self) -> int:
        return int((self.cluster.data / "postmaster.pid").read_text().split()[0])

    def clean(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
        here = self.cluster
        if here.data.exists():
            postgres.stop(here)
            postgres._end_processes(here)
        shutil.rmtree(here.socket, ignore_errors=True)
        if here.data.is_relative_to(postgres_files.SHARED):
            shutil.rmtree(here.data.parent, ignore_errors=True)
        shutil.rmtree(self.path, ignore_errors=True)


@pytest.fixture
def make_home():
    """Return a function that makes state folders; they and their servers are gone afterwards."""
    made: list[tuple[Home, Path]] = []

    def make(name: str = "var", user: int | None = None) -> Home:
        top = Path(tempfile.mkdtemp(prefix="ks-test-"))
        path = top / name
        path.mkdir(parents=True)
        if user is not None:
            for folder in (top, *top.rglob("*")):
                os.chown(folder, user, user)
        home = Home(path, user)
        made.append((home, top))
        return home

    yield make
    for home, top in made:
        home.clean()
        shutil.rmtree(top, ignore_errors=True)


@pytest.fixture
def home(make_home):
    return make_home()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


can_become_nobody = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("setpriv") is None
    or subprocess.run([*become(NOBODY), "true"], check=False, capture_output=True).returncode != 0,
    reason="needs root with setpriv",
)
