"""Stretches of a document that fit a limit, with what has to be repeated around parts of tables and code."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from apps.knowledge.chunkers.blocks import LINE, Block
from apps.knowledge.chunkers.drafts import ChunkDraft, PageMark, TokenCounter
from apps.knowledge.chunkers.splitting import Span, pack, spans


class Limit(NamedTuple):
    """The most that one chunk may hold: characters, and tokens of the model that embeds, 0 for any number."""

    size: int
    tokens: int = 0

    def less(self, characters: int) -> "Limit":
        """Return what is left beside a stretch, each of whose characters may be a token."""
        return Limit(self.size - characters, self.tokens and self.tokens - characters)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the document, with what has to be repeated around it."""

    start: int
    end: int
    prefix: str = ""
    suffix: str = ""

    @property
    def whole(self) -> bool:
        return not self.prefix and not self.suffix


class Measure:
    """Whether a stretch fits. Tokens are counted once over the text, in steps, and only where bytes don't settle it.

    The sum over steps is at least the count of the whole but for a token a joint, and no token of
    any tokenizer is shorter than a byte.
    """

    def __init__(self, text: str, limit: Limit, count: TokenCounter, around: str = "") -> None:
        self.text, self.count = text, count
        self.size = limit.size - len(around)
        self.limit = limit.tokens - count(around) if limit.tokens and around else limit.tokens
        self.limited = bool(limit.tokens)
        self._start = self._counted_to = -1
        self._tokens = 0

    def __call__(self, start: int, end: int) -> bool:
        if end - start > self.size:
            return False
        if not self.limited:
            return True
        if start != self._start or end < self._counted_to:
            self._start = self._counted_to = start
            self._tokens = 0
        rest = self.text[self._counted_to : end]
        if self._tokens + len(rest.encode("utf-8", "surrogatepass")) <= self.limit:
            return True
        self._tokens += self.count(rest)
        self._counted_to = end
        return self._tokens <= self.limit


def cut(markdown: str, block: Block, span: Span, limit: Limit, count: TokenCounter) -> list[Piece]:
    """Cut the part of a block that lies in ``span`` into pieces that fit."""
    size, tokens = limit
    start, end = span
    fits = Measure(markdown, limit, count)
    if fits(start, end) and (start == block.start or block.kind == "text"):
        return [Piece(start, end)]
    head, tail = _frame(markdown, block)
    if not head or len(head) + len(tail) > size // 2 or (tokens and count(head + tail) > tokens // 2):
        return [Piece(*found) for found in pack(spans(markdown, start, end, fits, longest=size), fits)]
    fits = Measure(markdown, limit, count, around=head + tail)
    units = _lines(markdown, max(start, block.body), end, fits, size)
    pieces = [Piece(*found, prefix=head, suffix=tail) for found in pack(units, fits)]
    if start < block.body:  # the first piece has the true header before it, and needs no other
        pieces[0] = replace(pieces[0], start=start, prefix="")
    if block.kind == "code" and pieces[-1].end == block.end and _closed(markdown, block):
        pieces[-1] = replace(pieces[-1], suffix="")
    return pieces


def _frame(markdown: str, block: Block) -> tuple[str, str]:
    """Return what is repeated before and after each part of a table or code block; nothing for text."""
    if block.kind not in ("table", "code"):
        return "", ""
    head = markdown[block.start : block.body]
    if not head.endswith("\n"):
        head += "\n"
    return head, f"\n{block.closer}" if block.kind == "code" else ""


def _closed(markdown: str, block: Block) -> bool:
    return markdown[block.body : block.end].rstrip().endswith(block.closer)


def _lines(markdown: str, start: int, end: int, fits: Measure, longest: int) -> Iterator[Span]:
    for line in LINE.finditer(markdown, start, end):
        if fits(line.start(), line.end()):
            yield line.span()
        else:
            yield from pack(spans(markdown, *line.span(), fits, longest=min(longest, fits.size)), fits)


def overlapped(markdown: str, pieces: list[Piece], overlap: int, *, earliest: int | None = None) -> list[Piece]:
    """Let each piece begin up to ``overlap`` characters earlier, at a word or character boundary.

    No piece begins before the one before it, but for the first, which may begin as early as ``earliest``.
    """
    if not overlap:
        return pieces
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        before = pieces[at - 1] if at else None
        least = piece.start if earliest is None else earliest
        if before:
            least = before.start + 1 if before.whole else piece.start
        found.append(replace(piece, start=_earlier(markdown, piece.start, max(least, piece.start - overlap))))
        if not piece.whole:
            found[-1] = piece
    return found


def _earlier(markdown: str, start: int, earliest: int) -> int:
    """Return the first boundary at or after ``earliest`` and before ``start``."""
    if earliest >= start:
        return start
    first = next(spans(markdown, earliest, start, lambda a, b: True, longest=start - earliest), (start, start))
    return first[1] if first[1] < start else earliest


def stripped(markdown: str, start: int, end: int) -> Span:
    """Move both ends inward over white space."""
    while start < end and markdown[start].isspace():
        start += 1
    while end > start and markdown[end - 1].isspace():
        end -= 1
    return start, end


def drafted(
    markdown: str,
    pages: Sequence[PageMark],
    piece: Piece,
    *,
    level: int,
    ordinal: int,
    parent: int | None,
    heading: str,
) -> ChunkDraft | None:
    """Return the chunk of a piece, None where nothing but white space is in it."""
    start, end = stripped(markdown, piece.start, piece.end)
    if start >= end:
        return None
    text = f"{piece.prefix}{markdown[start:end]}{piece.suffix}"
    page = page_end = None
    if pages:
        page = page_at(pages, start)
        page_end = page_at(pages, end - 1)
    return ChunkDraft(level, ordinal, parent, text, heading, page, page_end, start, end)


def page_at(pages: Sequence[PageMark], place: int) -> int:
    """Return the number of the page on which a character stands."""
    return pages[max(bisect_right(pages, place, key=lambda mark: mark.start) - 1, 0)].number
