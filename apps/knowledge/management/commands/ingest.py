"""Take files into a knowledge base and wait until each is indexed or has failed."""

import json
import sys
import time
from argparse import ArgumentParser
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.files import File
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connection
from django.utils.translation import gettext as _

from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.knowledge import services
from apps.knowledge.errors import failure
from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces import command_line
from apps.workspaces.models import User, Workspace

AHEAD = 32  # files that are stored before the first of them has to be done, so that workers can share the work
DATABASE_AWAY_S = 60  # how long a database that was restarted is waited for
FAILED = (Document.Status.ERROR_PARSING, Document.Status.ERROR_INDEXING)


@dataclass(slots=True)
class _Item:
    path: Path
    document: UUID | None = None
    status: str = "refused"
    error_code: str = ""
    message: str = ""
    chunks: int = 0
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0


class Command(BaseCommand):
    help = "Upload files or folders into a knowledge base and wait until each is indexed or has failed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a file, or a folder with all in it")
        parser.add_argument(
            "--kb", type=storable, required=True, metavar="NAME", help="the knowledge base; created if there is none"
        )
        parser.add_argument("--chunker", default="", metavar="C", help="how a new knowledge base cuts its documents")
        parser.add_argument("--json", action="store_true", help="print one JSON object a file")
        command_line.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace, person = command_line.acting(options)
        files = list(_files(options["paths"]))
        if not files:
            raise CommandError(_("There is no file in what was named."))
        try:
            knowledge_base = _base(workspace, person, options["kb"], options["chunker"])
        except KnowSphereError as error:
            raise CommandError(error.message) from error
        failed = 0
        for item in self._shown(_taken_in(files, knowledge_base, person), len(files), quiet=options["json"]):
            failed += bool(item.error_code)
            self._print(item, as_json=options["json"])
        if failed:
            raise SystemExit(1)

    def _shown(self, items: Iterator[_Item], total: int, *, quiet: bool) -> Iterator[_Item]:
        """Draw a progress bar where somebody watches."""
        if quiet or not sys.stderr.isatty():
            yield from items
            return
        from tqdm import tqdm

        with tqdm(total=total, unit="file", file=sys.stderr) as bar:
            for item in items:
                with bar.external_write_mode():
                    yield item
                bar.update()

    def _print(self, item: _Item, *, as_json: bool) -> None:
        if as_json:
            line = {
                "path": storable(str(item.path)),
                "document_id": str(item.document) if item.document else None,
                "status": item.status,
                "error_code": item.error_code,
                "chunks": item.chunks,
                "seconds": round(item.seconds, 3),
            }
            self.stdout.write(json.dumps(line, ensure_ascii=False))
        elif item.error_code:
            self.stdout.write(self.style.ERROR(f"{storable(str(item.path))}: {item.error_code}: {item.message}"))
        else:
            self.stdout.write(f"{storable(str(item.path))}: {item.status}, {item.chunks} chunks, {item.seconds:.1f} s")
        self.stdout.flush()


def _files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files named and, in order, those in folders named; hidden ones only where they are named."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for found in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") for part in found.relative_to(path).parts)
            if found.is_file() and not hidden:
                yield found


def _base(workspace: Workspace, person: User, name: str, chunker: str) -> KnowledgeBase:
    """Return the person's base of this name, creating it where they may.

    Raises:
        KnowSphereError: they may not, or it is somebody else's.
        CommandError: it cuts its documents in another way than asked for.
    """
    found = KnowledgeBase.objects.editable_by(person).filter(workspace=workspace, name=name).first()
    if found is None:
        return services.create_knowledge_base(
            workspace=workspace, name=name, actor=person, chunker=chunker or "parent_child"
        )
    if chunker and chunker != found.chunker:
        raise CommandError(_("“%(name)s” uses the chunker %(chunker)s.") % {"name": name, "chunker": found.chunker})
    return found


def _taken_in(files: list[Path], knowledge_base: KnowledgeBase, person: User) -> Iterator[_Item]:
    """Yield each file when it is done, in order. Workers that run meanwhile take part: steps are claimed."""
    waiting: deque[_Item] = deque()
    for path in files:
        waiting.append(_added(path, knowledge_base, person))
        if len(waiting) >= AHEAD:
            yield _finished(waiting.popleft())
    while waiting:
        yield _finished(waiting.popleft())


def _added(path: Path, knowledge_base: KnowledgeBase, person: User) -> _Item:
    item = _Item(path)
    try:
        with path.open("rb") as file:
            document = services.add_document(
                knowledge_base=knowledge_base, file=File(file), name=path.name, actor=person
            )
        item.document = document.pk
        if document.status in FAILED:
            services.retry_document(document=document, actor=person)
    except KnowSphereError as error:
        item.error_code, item.message = error.code, error.message
    except OSError as error:
        item.error_code, item.message = "unreadable_path", error.strerror or str(error)
    return item


def _finished(item: _Item) -> _Item:
    """Work on a document, or wait while another process does, until it is done."""
    pause, away_since = 0.05, 0.0
    while item.document:
        try:
            item.status = services.ingest_document(item.document)
            away_since = 0.0
        except (OperationalError, InterfaceError):
            away_since = away_since or time.monotonic()
            if time.monotonic() - away_since > DATABASE_AWAY_S:
                raise
            connection.close()
            time.sleep(1)
            continue
        if item.status in Document.FINAL:
            document = Document.objects.get(pk=item.document)
            item.chunks = document.chunk_count
            if item.status in FAILED:
                item.error_code = document.error_code
                item.message = failure(document.error_code, document.error_details).message
            break
        if not item.status:
            item.status, item.error_code, item.message = "deleted", "not_found", _("It was deleted meanwhile.")
            break
        time.sleep(pause)
        pause = min(pause * 1.5, 1.0)
    item.seconds = time.monotonic() - item.began
    return item
