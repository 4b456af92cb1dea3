"""A document's Markdown as a sheet of paper, with a passage highlighted where it stands.

Only a window of the document is rendered: a few passages around a citation, or one page of many.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

import nh3
from django.core.files.storage import default_storage
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.token import Token

from apps.common.text import whole
from apps.knowledge.claims import best_span
from apps.knowledge.models import Chunk, Document
from apps.knowledge.parsers.content_types import DOCX
from apps.knowledge.services.documents import storing

PASSAGES_A_PAGE = 40
TEXT_WITHOUT_PASSAGES = 30_000  # characters shown of a document that is read but not indexed yet
ABOUT = 1_200  # characters shown before and after a passage of a text that is no document
MOST_WORDS = 10_000  # characters of a source that is highlighted on its page
PIECE_BYTES = 256 << 10  # of a text, read at a time
NEIGHBOURS = 1  # passages before and after a cited one
TAGS = {
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "mark", "ol", "p", "pre",
    "s", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
LINES_COUNT = {
    "application/pdf",
    "text/plain",
    DOCX,
}  # kinds whose line ends are their own, not those of Markdown's source
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
MARKDOWN_OF_LINES = MarkdownIt("commonmark", {"html": False, "breaks": True})


class Span(NamedTuple):
    """Character offsets in a document's Markdown."""

    start: int
    end: int

    def meets(self, other: "Span | None") -> bool:
        """Return whether the two have a character in common."""
        return other is not None and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Sheet:
    """A window of a document, ready to show. Numbers of passages count from 1."""

    html: SafeString
    first: int = 0
    last: int = 0
    total: int = 0
    previous: int | None = None  # the passage at which the window before begins
    next: int | None = None
    target: str = ""  # id of the element to scroll to
    missing: bool = False  # what was asked for is not in the document any more
    marked: Span | None = None  # what is yellow, in the document's Markdown


def open_at(document: Document, *, chunk: str = "", start: str = "", end: str = "", first: str = "") -> Sheet:
    """Return the page of a document that holds a passage, a span, or begins near passage ``first``.

    All four come from an address, so anything may be in them; what does not fit is ignored.
    """
    passages = list(_passages(document))
    wanted = _span_of_chunk(document, chunk) or _span(start, end)
    missing = bool(chunk or start) and wanted is None
    if not passages:
        text = _stretch(document, 0, TEXT_WITHOUT_PASSAGES)
        return Sheet(_render(document, text, 0, (), wanted, wanted), target=_target(wanted), missing=missing)
    index = _index_of(passages, wanted.start) if wanted else min(max((whole(first) or 0) - 1, 0), len(passages) - 1)
    index -= index % PASSAGES_A_PAGE
    return _window(document, passages, index, index + PASSAGES_A_PAGE, wanted, wanted, missing=missing)


def around(document: Document, *, chunk_id: UUID | None, text: str, start: int | None, claim: str) -> Sheet:
    """Return a cited passage with its neighbours; yellow is what ``claim`` rests on.

    ``text`` is the passage as it was read. The document may have been indexed anew since: then it
    is looked up by its words, and where they are gone the passage stands alone and ``missing`` is set.
    """
    same = start is not None and _stretch(document, start, start + len(text)) == text
    place = start if start is not None and same else _place_of(document, text)
    if not text or place < 0:
        marked = Span(*best_span(text, claim))
        return Sheet(_render(document, text, 0, (), marked, None), target=_target(marked), missing=True)
    marked_from, marked_to = best_span(text, claim)
    cited, marked = Span(place, place + len(text)), Span(place + marked_from, place + marked_to)
    passages = list(_passages(document))
    if not passages:
        return Sheet(_render(document, text, place, (), marked, cited), target=_target(marked), marked=marked)
    first, last = _index_of(passages, cited.start), _index_of(passages, cited.end - 1)
    return _window(document, passages, max(0, first - NEIGHBOURS), last + 1 + NEIGHBOURS, marked, cited)


def around_in(whole_text: str, content_type: str, *, text: str, start: int | None, claim: str) -> Sheet:
    """Do what ``around`` does for a text that is no document: a passage with some of what stands about it."""
    place = start if start is not None and whole_text[start : start + len(text)] == text else whole_text.find(text)
    kind = Document(content_type=content_type)
    marked_from, marked_to = best_span(text, claim)
    if not text or place < 0:
        marked = Span(marked_from, marked_to)
        return Sheet(_render(kind, text, 0, (), marked, None), target=_target(marked), missing=True)
    end = place + len(text)
    begin = whole_text.rfind("\n\n", 0, max(place - ABOUT, 0)) + 2 if place > ABOUT else 0
    border = whole_text.find("\n\n", end + ABOUT)
    window = whole_text[max(begin, 0) : border if border >= 0 else None]
    marked = Span(place + marked_from, place + marked_to)
    html = _render(kind, window, max(begin, 0), (), marked, Span(place, end))
    return Sheet(html, target=_target(marked), marked=marked)


def words_between(document: Document, start: str, end: str) -> str:
    """Return at most MOST_WORDS between two places of a document's Markdown; "" where they make no sense."""
    span = _span(start, end)
    return _stretch(document, span.start, min(span.end, span.start + MOST_WORDS)) if span else ""


class _Passage(NamedTuple):
    start: int
    end: int
    page: int | None


def _passages(document: Document) -> Iterator[_Passage]:
    rows = Chunk.objects.filter(document=document, generation=document.generation, level=Chunk.PARENT)
    for row in rows.order_by("ordinal").values_list("start", "end", "page"):
        yield _Passage(*row)


def _window(
    document: Document,
    passages: Sequence[_Passage],
    first: int,
    last: int,
    marked: Span | None,
    cited: Span | None,
    *,
    missing: bool = False,
) -> Sheet:
    last = min(last, len(passages))
    shown = passages[first:last]
    begin = 0 if first == 0 else shown[0].start
    text = _stretch(document, begin, None if last == len(passages) else shown[-1].end)
    return Sheet(
        _render(document, text, begin, shown, marked, cited),
        first=first + 1,
        last=last,
        total=len(passages),
        previous=max(1, first + 1 - PASSAGES_A_PAGE) if first else None,
        next=last + 1 if last < len(passages) else None,
        target=_target(marked),
        missing=missing,
        marked=marked,
    )


def _render(
    document: Document,
    text: str,
    offset: int,
    passages: Sequence[_Passage],
    marked: Span | None,
    cited: Span | None,
) -> SafeString:
    """Render Markdown block by block; each block's element tells where it begins (``data-at``)."""
    options = (MARKDOWN_OF_LINES if document.content_type in LINES_COUNT else MARKDOWN).options
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    blocks, page, target_done = [], None, False
    for group in _blocks(MARKDOWN.parse(text)):
        first_line, end_line = group[0].map or (0, 0)
        span = Span(offset + lines[first_line], offset + min(lines[end_line], len(text)))
        here = _page_at(passages, span.start)
        if here is not None and here != page:
            if page is not None:
                blocks.append(format_html('<small class="page">{}</small>', _("Page %(page)s") % {"page": here}))
            page = here
        heading = group[0].type == "heading_open"  # marked only where nothing else is
        hit = span.meets(marked) and not (heading and marked and marked.end > span.end)
        if hit and marked:
            _mark(group, text, lines, Span(marked.start - offset, marked.end - offset))
        classes = " ".join(
            word
            for word, on in (
                ("cited", span.meets(cited)),
                ("marked", hit and group[0].type in {"fence", "code_block"}),
                ("wide-box", group[0].type == "table_open"),
            )
            if on
        )
        html = nh3.clean(MARKDOWN.renderer.render(group, options, {}), tags=TAGS, link_rel="noopener nofollow")
        name = "evidence" if hit and not target_done else f"at-{span.start}"
        target_done = target_done or hit
        block = format_html('<div id="{}" class="{}" data-at="{}" dir="auto">', name, classes, span.start)
        blocks.append(block + mark_safe(html) + mark_safe("</div>"))  # noqa: S308 (cleaned just above)
    return format_html_join("\n", "{}", ((block,) for block in blocks))


def _blocks(tokens: list[Token]) -> Iterator[list[Token]]:
    """Cut a flat list of tokens into its outermost blocks."""
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield group
            group = []


def _mark(group: list[Token], text: str, lines: Sequence[int], marked: Span) -> None:
    """Put ``<mark>`` around the words of a block that lie in ``marked``; a cut word form is no harm."""
    place = group[0].map or [0, 0]
    for token in group:
        place = token.map or place
        if token.type != "inline":
            continue
        span = Span(lines[place[0]], min(lines[place[1]], len(text)))
        if not span.meets(marked):
            continue
        wanted = text[max(span.start, marked.start) : min(span.end, marked.end)].strip()
        before, found, after = token.content.partition(wanted) if wanted else ("", "", "")
        if not found:
            before, found, after = "", token.content, ""
        open_mark, close_mark = Token("mark_open", "mark", 1), Token("mark_close", "mark", -1)
        token.children = [*_inline(before), open_mark, *_inline(found), close_mark, *_inline(after)]


def _inline(text: str) -> list[Token]:
    return MARKDOWN.parseInline(text)[0].children or [] if text else []


def _page_at(passages: Sequence[_Passage], place: int) -> int | None:
    if not passages:
        return None
    return passages[_index_of(passages, place)].page


def _index_of(passages: Sequence[_Passage], place: int) -> int:
    """Return the index of the passage that holds a place, or else the last one that begins before it."""
    for index, (_this, following) in enumerate(pairwise(passages)):
        if place < following.start:
            return index
    return len(passages) - 1


def _span_of_chunk(document: Document, chunk: str) -> Span | None:
    try:
        wanted = UUID(chunk)
    except ValueError:
        return None
    rows = Chunk.objects.filter(document=document, pk=wanted).values_list("start", "end")
    return next((Span(*row) for row in rows), None)


def _span(start: str, end: str) -> Span | None:
    span = Span(whole(start) or 0, whole(end) or 0)
    return span if span.end > span.start else None


def _target(marked: Span | None) -> str:
    return "evidence" if marked else ""


def _stretch(document: Document, start: int, end: int | None = None) -> str:
    """Return characters ``start`` to ``end`` of a document's Markdown; what follows is not read."""
    kept, place = [], 0
    for piece in _pieces(document):
        kept.append(piece[max(0, start - place) : None if end is None else max(0, end - place)])
        place += len(piece)
        if end is not None and place >= end:
            break
    return "".join(kept)


def _place_of(document: Document, text: str) -> int:
    """Return where a text first stands in a document's Markdown, -1 where it does not."""
    held, place = "", 0
    for piece in _pieces(document):
        held += piece
        if (found := held.find(text)) >= 0:
            return place + found
        gone = max(0, len(held) - len(text) + 1)  # what is left may be its beginning
        held, place = held[gone:], place + gone
    return -1


def _pieces(document: Document) -> Iterator[str]:
    """Yield a document's Markdown a piece at a time; nothing where there is none."""
    key = document.markdown_key or document.parsed.get("key", "")  # read, and not indexed yet
    if not key:
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with storing(), default_storage.open(key, "rb") as stored:
            while piece := stored.read(PIECE_BYTES):
                yield decoder.decode(piece)
    except FileNotFoundError:  # the page says that there is no text
        return
