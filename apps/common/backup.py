"""A backup is one file: the database as ``pg_dump`` writes it, the stored files, and what they belong to.

The database comes first and in one snapshot, so every row's file is in the archive, unless it was
deleted since; a file too many is swept away after a restore. ``MASTER_KEY`` is not in it: who finds
the file must not read the keys of models. Its fingerprint is, so that a restore with another says so.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connections
from django.utils import timezone

FORMAT = 1
MANIFEST, DATABASE, FILES = "manifest.json", "database.dump", "files"
CACHES = "langgraph"  # a schema that is only a cache of rows


class BackupFailed(Exception):
    """A sentence for the operator that says what happened, what is safe, what to do."""


def write(target: Path, *, with_files: bool = True) -> dict[str, Any]:
    """Write a backup to ``target``, whole or not at all, readable by its owner only; return its manifest.

    Raises:
        BackupFailed: nothing was written.
    """
    if target.exists():
        raise BackupFailed(f"{target} is there already. Nothing was written; choose another name.")
    manifest = {
        "format": FORMAT,
        "created_at": timezone.now().isoformat(),
        "master_key": fingerprint(settings.MASTER_KEYS[0]),
        "with_files": with_files,
    }
    draft = target.with_name(f".{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            dump = Path(folder) / DATABASE
            _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--exclude-schema={CACHES}",
                 f"--file={dump}")  # fmt: skip
            with _private(draft) as file, tarfile.open(fileobj=file, mode="w") as archive:
                _add(archive, MANIFEST, json.dumps(manifest, indent=2).encode())
                archive.add(dump, DATABASE)
                count = _add_files(archive) if with_files else 0
        draft.rename(target)
    except OSError as error:
        raise BackupFailed(f"The backup could not be written: {error}. Nothing was left at {target}.") from error
    finally:
        draft.unlink(missing_ok=True)
    return {**manifest, "files": count, "bytes": target.stat().st_size}


def read_manifest(source: Path) -> dict[str, Any]:
    """Return what a backup says of itself. Raises BackupFailed."""
    try:
        with tarfile.open(source) as archive:
            member = archive.extractfile(MANIFEST)
            manifest: dict[str, Any] = json.load(member) if member else {}
    except (OSError, KeyError, tarfile.TarError, ValueError) as error:
        raise BackupFailed(f"{source} is no backup that can be read ({error}). Nothing was changed.") from error
    if manifest.get("format") != FORMAT:
        raise BackupFailed(f"{source} was written by another version. Nothing was changed.")
    return manifest


def restore(source: Path, *, replace: bool = False) -> int:
    """Put a backup in place of what is here; return the number of files.

    The database is restored in one transaction: it is the old one or the new one. Files come after it.

    Raises:
        BackupFailed: the backup cannot be read, something is here and ``replace`` was not said, or a web or
            worker process is running.
    """
    manifest = read_manifest(source)
    if manifest["master_key"] not in map(fingerprint, settings.MASTER_KEYS):
        raise BackupFailed(
            "The backup was made under another MASTER_KEY, without which the keys of models cannot be read. "
            "Nothing was changed; set that MASTER_KEY, or add it to MASTER_KEY_FALLBACKS."
        )
    if running := _running():
        raise BackupFailed(f"Stop these first, they are using the database: {', '.join(running)}. Nothing was changed.")
    if not replace and _holds_rows():
        raise BackupFailed("There are people in this database. Nothing was changed; say --replace if that is meant.")
    connections.close_all()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(source) as archive:
        archive.extract(DATABASE, folder, filter="data")
        _run("pg_restore", "--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction",
             "--exit-on-error", f"--dbname={_environment()['PGDATABASE']}", str(Path(folder) / DATABASE))  # fmt: skip
        try:
            return _extract_files(archive) if manifest["with_files"] else 0
        except OSError as error:
            raise BackupFailed(
                f"The database is restored, but not all files: {error}. The backup is whole; mend that and restore it "
                "again with --replace."
            ) from error


def fingerprint(master_key: str) -> str:
    """Return what tells one MASTER_KEY from another, and nothing about it."""
    return hashlib.sha256(b"knowsphere backup " + master_key.encode()).hexdigest()[:16]


def _files() -> Path:
    return Path(settings.MEDIA_ROOT)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _add_files(archive: tarfile.TarFile) -> int:
    count = 0
    if not settings.MEDIA_ROOT:
        for key in _objects(""):
            try:
                with default_storage.open(key, "rb") as file:
                    content: IO[bytes] | Any = (
                        file.file
                    )  # brought here before the entry is begun, which could not be taken back
                    entry = tarfile.TarInfo(f"{FILES}/{key}")
                    entry.size = content.seek(0, os.SEEK_END)
                    content.seek(0)
                    archive.addfile(entry, content)
            except FileNotFoundError:  # deleted while this ran
                continue
            count += 1
        return count
    for path in sorted(_files().rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        try:
            archive.add(path, f"{FILES}/{path.relative_to(_files()).as_posix()}", recursive=False)
        except FileNotFoundError:  # deleted while this ran
            continue
        count += 1
    return count


def _extract_files(archive: tarfile.TarFile) -> int:
    """Write the files beside the store, then put them in its place: names can lead nowhere else.

    Into a bucket they are put one by one; what else is there the daily sweep takes away.
    """
    if not settings.MEDIA_ROOT:
        return _put_objects(archive)
    root = _files()
    root.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        for member in archive:
            if member.isfile() and member.name.startswith(f"{FILES}/"):
                archive.extract(member, folder, filter="data")
                count += 1
        fresh = Path(folder) / FILES
        fresh.mkdir(exist_ok=True)
        old = Path(folder) / "old"
        if root.exists():
            root.rename(old)
        shutil.move(fresh, root)
    return count


def _put_objects(archive: tarfile.TarFile) -> int:
    count = 0
    for member in archive:
        content = archive.extractfile(member) if member.name.startswith(f"{FILES}/") else None
        if content:
            default_storage.save(member.name.removeprefix(f"{FILES}/"), File(content))
            count += 1
    return count


def _objects(folder: str) -> Iterator[str]:
    folders, files = default_storage.listdir(folder)
    yield from (f"{folder}{name}" for name in files)
    for name in folders:
        yield from _objects(f"{folder}{name}/")


@contextmanager
def _private(path: Path) -> Iterator[Any]:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _running() -> list[str]:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name IN ('knowsphere-web', 'knowsphere-worker') ORDER BY 1"
        )
        return [row[0].removeprefix("knowsphere-") for row in cursor.fetchall()]


def _holds_rows() -> bool:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT to_regclass('workspaces_user') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return False
        cursor.execute("SELECT EXISTS (SELECT 1 FROM workspaces_user)")
        return bool(cursor.fetchone()[0])


def _environment() -> Mapping[str, str]:
    """Return the default database's address as PostgreSQL's own tools read it; never on the command line."""
    database = connections["default"].settings_dict
    options = database.get("OPTIONS", {})
    values = {
        "PGHOST": database["HOST"] or options.get("host", ""),
        "PGPORT": str(database["PORT"] or options.get("port", "")),
        "PGUSER": database["USER"],
        "PGPASSWORD": database["PASSWORD"],
        "PGDATABASE": database["NAME"],
        "PGSSLMODE": options.get("sslmode", ""),
        "PGAPPNAME": "knowsphere-backup",
    }
    return {name: value for name, value in values.items() if value}


def _run(tool: str, *arguments: str) -> None:
    found = next((path for path in (Path(settings.POSTGRES_BINARIES) / tool,) if path.exists()), None) or shutil.which(
        tool
    )
    if not found:
        raise ImproperlyConfigured(f"{tool} is not on this machine")
    done = subprocess.run(
        [str(found), *arguments], env={**os.environ, **_environment()}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BackupFailed(f"{tool} failed, and nothing was changed: {done.stderr.strip()[-800:]}")
