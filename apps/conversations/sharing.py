"""What a share link shows: the answers as they are, of their sources what its reader may know.

A reader of the workspace sees what the doors let them see. A reader from outside sees the names of
documents that the whole workspace may read, and never a passage; everything else is a marker that says
only that there is a source.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from apps.conversations import pages, rows_branches
from apps.conversations.models import Citation, Share, Turn
from apps.conversations.rendering import AnswerRenderer, anchor_of
from apps.knowledge.models import Document
from apps.workspaces.models import User

MOST = 200  # turns


@dataclass(frozen=True, slots=True)
class SharedSource:
    """A source as a reader of the link may know it. ``opens``: they may open the document itself."""

    n: int
    document: str
    page: int | None = None
    url: str = ""
    heading: str = ""
    document_id: UUID | None = None
    start: int | None = None
    end: int | None = None
    opens: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class SharedTurn:
    """A question and its answer. ``sources`` are the cited ones, by the number that is shown."""

    turn: Turn
    html: SafeString
    anchor: str
    sources: list[tuple[int, SharedSource]]


def shared_turns(share: Share, reader: User | None) -> list[SharedTurn]:
    """Return what the link shows to ``reader`` (None: somebody who is not of the workspace), oldest first."""
    ids = rows_branches.path_to(share.turn_id, limit=MOST)
    turns = list(pages.with_parts(Turn.objects.filter(pk__in=ids)).order_by("number"))
    citations = {turn.pk: _citations(turn) for turn in turns}
    documents = {row.document_id for rows in citations.values() for row in rows if row.document_id}
    known = _known(share, reader, documents)
    return [_shared_turn(turn, citations[turn.pk], known, opens=reader is not None) for turn in turns]


def _citations(turn: Turn) -> Sequence[Citation]:
    return [row for message in turn.messages.all() for row in message.citations.all()]


def _known(share: Share, reader: User | None, documents: set[UUID]) -> frozenset[UUID]:
    """Return the documents whose names this reader may learn; one query."""
    if reader is None:
        owner = share.conversation.owner
        if owner is None:  # a visitor's conversation has no links
            return frozenset()
        found = Document.objects.visible_to(owner).filter(pk__in=documents).open_to_all()
    else:
        found = Document.objects.visible_to(reader).filter(pk__in=documents)
    return frozenset(found.values_list("pk", flat=True))


def _shared_turn(turn: Turn, rows: Sequence[Citation], known: frozenset[UUID], *, opens: bool) -> SharedTurn:
    text = "".join(message.text for message in turn.messages.all() if message.role == "assistant")
    if turn.status in Turn.ACTIVE:
        text = ""
    sources = {row.n: _source(row, known, opens=opens) for row in rows}
    anchor = anchor_of(turn.pk)
    renderer = AnswerRenderer(sources, anchor=anchor)
    html = renderer.render(text)
    shown = sorted(((number, sources[n]) for n, number in renderer.shown.items()), key=lambda pair: pair[0])
    return SharedTurn(turn, html, anchor, shown)


def _source(row: Citation, known: frozenset[UUID], *, opens: bool) -> SharedSource:
    if row.kind == "web":
        return SharedSource(row.n, row.document, url=row.url, heading=row.heading)
    if row.document_id is None or row.document_id not in known:
        return SharedSource(row.n, _("Not shared"), hidden=True)
    shown = SharedSource(row.n, row.document, page=row.page, heading=row.heading)
    if not opens:
        return shown
    return replace(shown, document_id=row.document_id, start=row.start, end=row.end, opens=True)
