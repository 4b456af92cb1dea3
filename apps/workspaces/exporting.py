"""A workspace as one archive: what its exporter may read, as JSON lines and files.

Apps above register what they add in ``AppConfig.ready``. Nothing is gathered first: the archive is
written while it is sent, so a large one costs no memory.
"""

import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from apps.common.database import in_db
from apps.common.registry import Registry
from apps.workspaces import audit
from apps.workspaces.models import Department, Membership, User, Workspace

# Yields (path within the archive, its bytes in pieces); each step's queries are done when it yields.
Exporter = Callable[[Workspace, User], Iterator[tuple[str, Iterable[bytes]]]]
EXPORTERS = Registry[Exporter]("exporter", {"workspaces": "apps.workspaces.exporting.people"})


async def archive(*, workspace: Workspace, actor: User) -> AsyncIterator[bytes]:
    """Yield a ZIP archive in pieces; the log says who took it."""
    pieces = _pieces(workspace, actor)
    while (piece := await in_db(next, pieces, None)) is not None:
        yield piece


def as_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Write rows as JSON lines."""
    for row in rows:
        yield orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE)


def people(workspace: Workspace, actor: User) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Export who is in the workspace and in which department."""
    members = Membership.objects.visible_to(actor).filter(workspace=workspace)
    columns = ("user_id", "user__email", "user__name", "role", "created_at")
    yield "people.jsonl", as_lines(list(members.values(*columns)))
    departments = Department.objects.visible_to(actor).filter(workspace=workspace)
    yield "departments.jsonl", as_lines(list(departments.values("id", "name", "parent_id")))


class _Pipe:
    """What an archive is written into, and read out of piece by piece; it cannot seek."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: what was written is there."""

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        found, self._written = b"".join(self._written), []
        return found


def _pieces(workspace: Workspace, actor: User) -> Iterator[bytes]:
    audit.record("workspace.exported", who=actor, workspace_id=workspace.pk, target=workspace, name=workspace.name)
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as opened:  # type: ignore[call-overload]
        for name in EXPORTERS:
            for path, content in EXPORTERS.get(name)(workspace, actor):
                with opened.open(path, "w", force_zip64=True) as entry:
                    for piece in content:
                        entry.write(piece)
                        if written := pipe.taken():
                            yield written
    yield pipe.taken()
