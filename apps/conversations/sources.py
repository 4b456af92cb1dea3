"""A source of an answer, opened: the cited passage within its document, if the reader may still see it."""

from dataclasses import dataclass

from django.http import Http404

from apps.conversations.models import Attachment, Citation, Turn
from apps.conversations.rendering import shown_numbers
from apps.knowledge import sheets
from apps.knowledge.claims import claim_before
from apps.knowledge.models import Chunk, Document
from apps.knowledge.page_pictures import can_be_drawn
from apps.knowledge.sheets import Sheet
from apps.workspaces.models import User


@dataclass(frozen=True, slots=True)
class OpenSource:
    """What the source panel shows. ``document`` and ``sheet`` are None where it may not be read."""

    turn: Turn
    n: int
    shown: int  # the number that readers see
    name: str
    page: int | None
    heading: str
    url: str
    others: list[tuple[int, Citation]]
    previous: int | None
    next: int | None
    place: int
    count: int
    document: Document | None = None
    sheet: Sheet | None = None

    @property
    def drawn(self) -> bool:
        """Whether the page itself can be shown, the words highlighted where they stand."""
        stands = self.sheet is not None and self.sheet.marked is not None and not self.sheet.missing
        return stands and bool(self.page) and self.document is not None and can_be_drawn(self.document)


def open_source(turn: Turn, n: int, *, user: User, occurrence: int = 0) -> OpenSource:
    """Open source ``n`` of a turn; ``occurrence`` says which of its markers (from 0) was followed.

    Seeing a citation does not mean that its document may still be read: the door is asked each time.

    Raises:
        Http404: the turn has no such source.
    """
    mine = Citation.objects.visible_to(user).with_readable(user)
    citations = {row.n: row for row in mine.filter(message__turn=turn)}
    citation = citations.get(n) or _of_running_turn(turn, n, user)
    if citation is None:
        raise Http404
    answer = turn.messages.filter(role="assistant").values_list("text", flat=True).first() or ""
    numbers = shown_numbers(answer, citations.values())
    order = list(numbers) or [n]
    index = order.index(n) if n in order else 0
    document, sheet = _opened(citation, user, claim=claim_before(answer, n, occurrence))
    return OpenSource(
        turn=turn,
        n=n,
        shown=numbers.get(n, n),
        name=citation.document,
        page=citation.page,
        heading=citation.heading,
        url=citation.url,
        others=[(shown, citations[other]) for other, shown in numbers.items() if other != n],
        previous=order[index - 1] if index else None,
        next=order[index + 1] if index + 1 < len(order) else None,
        place=index + 1,
        count=len(order),
        document=document,
        sheet=sheet,
    )


def _opened(citation: Citation, user: User, *, claim: str) -> tuple[Document | None, Sheet | None]:
    """Return the cited document, if it is one, and the passage where it stands; nothing that may not be read."""
    text, start = citation.text, citation.start
    if citation.document_id is None:  # a page of the web, as it read when the answer was written
        return None, sheets.around_in(text, "text/markdown", text=text, start=0, claim=claim) if text else None
    if citation.kind == "attachment":
        file = Attachment.objects.visible_to(user).filter(pk=citation.document_id).first()
        return None, sheets.around_in(file.text, file.media_type, text=text, start=start, claim=claim) if file else None
    document = Document.objects.visible_to(user).filter(pk=citation.document_id).first()
    if document is None:
        return None, None
    return document, sheets.around(document, chunk_id=citation.chunk_id, text=text, start=start, claim=claim)


def _of_running_turn(turn: Turn, n: int, user: User) -> Citation | None:
    """Return a source that a running turn has named; its citations are stored with the answer's end."""
    if turn.status not in Turn.ACTIVE:
        return None
    named = turn.events.filter(type="sources").order_by("-seq").values_list("data", flat=True)
    item = next((item for data in named for item in data["sources"] if item["n"] == n), None)
    if item is None:
        return None
    chunk = Chunk.objects.visible_to(user).filter(pk=item["chunk_id"]).first() if item["chunk_id"] else None
    return Citation(
        n=n,
        kind=item["kind"],
        document_id=item["document_id"],
        chunk_id=item["chunk_id"],
        document=item["document"],
        page=item["page"],
        heading=item["heading"],
        url=item["url"],
        text=chunk.text if chunk else item["snippet"] if item["kind"] in {"attachment", "web"} else "",
        start=chunk.start if chunk else None,
    )
