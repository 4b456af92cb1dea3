"""Chunker "parent_child": passages that are read and cited, cut into children that are searched.

A passage never crosses a heading, keeps paragraphs, tables and code whole where they fit, and
carries its path of headings. What is larger than a passage is cut between sentences, rows or lines;
a table's header and a code block's fence are repeated around each part. A passage that is no longer
than a child has no children: it is its own.

Sizes are in characters of the chunk's text; ``*_tokens`` are in tokens of the model that embeds,
so that no part of a passage is cut off unread by it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

from apps.knowledge.chunkers.blocks import LINE, Block, blocks
from apps.knowledge.chunkers.drafts import (
    CHILD,
    PARENT,
    ChunkDraft,
    ChunkerSettings,
    PageMark,
    SettingRefused,
    TokenCounter,
)
from apps.knowledge.chunkers.splitting import Span, pack, spans

SMALLEST, LARGEST = 50, 20_000


@dataclass(frozen=True, slots=True)
class ParentChildSettings(ChunkerSettings):
    """Limits of one chunk. A token limit of 0 means that only characters count."""

    parent_size: int = 1_400
    parent_tokens: int = 460
    child_size: int = 384
    child_tokens: int = 460
    child_overlap: int = 0

    def check(self) -> None:
        """Refuse sizes that cannot hold, or an overlap that would leave no room for anything new."""
        for name in ("parent_size", "child_size"):
            if not SMALLEST <= getattr(self, name) <= LARGEST:
                raise SettingRefused(name, f"must be between {SMALLEST} and {LARGEST}")
        if self.child_size > self.parent_size:
            raise SettingRefused("child_size", "must not be larger than parent_size")
        for name in ("parent_tokens", "child_tokens"):
            if getattr(self, name) and not 16 <= getattr(self, name) <= LARGEST:
                raise SettingRefused(name, f"must be 0 (no limit) or between 16 and {LARGEST}")
        if not 0 <= self.child_overlap <= self.child_size // 2:
            raise SettingRefused("child_overlap", "must be between 0 and half of child_size")

    def within(self, tokens: int) -> Self:
        """Return the same settings with both token limits at most ``tokens``; no limit becomes that one."""
        limits = {name: min(getattr(self, name) or tokens, tokens) for name in ("parent_tokens", "child_tokens")}
        return replace(self, **limits)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the document, with what has to be repeated around it."""

    start: int
    end: int
    prefix: str = ""
    suffix: str = ""

    @property
    def whole(self) -> bool:
        return not self.prefix and not self.suffix


class _Measure:
    """Whether a stretch fits. Tokens are counted once over the text, in steps, and only where bytes don't settle it.

    The sum over steps is at least the count of the whole but for a token a joint, and no token of
    any tokenizer is shorter than a byte.
    """

    def __init__(self, text: str, size: int, tokens: int, count: TokenCounter, around: str = "") -> None:
        self.text, self.count = text, count
        self.size = size - len(around)
        self.limit = tokens - count(around) if tokens and around else tokens
        self.limited = bool(tokens)
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


@dataclass(slots=True)
class _Passage:
    """A parent in the making: its stretch, its path of headings, and the blocks it is made of."""

    piece: _Piece
    heading: str
    parts: list[tuple[Block, Span]]


def chunk(
    markdown: str, pages: Sequence[PageMark], settings: ParentChildSettings, count_tokens: TokenCounter
) -> list[ChunkDraft]:
    """Cut a document into passages and children, in reading order, each passage before its children.

    Args:
        markdown: the whole document; offsets in the result are into it.
        pages: where pages begin, in order; empty where the format has none.
        settings: checked here again, since a stored base may be older than the rules.
        count_tokens: counts as the embedding model does; called on about each character once.

    Raises:
        SettingRefused: the settings cannot be used.
    """
    settings.check()
    drafts: list[ChunkDraft] = []
    ordinals = [0, 0]
    starts = [mark.start for mark in pages]

    def add(level: int, parent: int | None, piece: _Piece, heading: str) -> bool:
        start, end = _stripped(markdown, piece.start, piece.end)
        if start >= end:
            return False
        text = f"{piece.prefix}{markdown[start:end]}{piece.suffix}"
        page = page_end = None
        if pages:
            page = pages[max(bisect_right(starts, start) - 1, 0)].number
            page_end = pages[max(bisect_right(starts, end - 1) - 1, 0)].number
        drafts.append(ChunkDraft(level, ordinals[level], parent, text, heading, page, page_end, start, end))
        ordinals[level] += 1
        return True

    for passage in _passages(markdown, settings, count_tokens):
        if not add(PARENT, None, passage.piece, passage.heading):
            continue
        parent = len(drafts) - 1
        children = _children(markdown, passage, settings, count_tokens)
        if len(children) > 1:
            for child in children:
                add(CHILD, parent, child, passage.heading)
    return drafts


def _passages(markdown: str, settings: ParentChildSettings, count: TokenCounter) -> Iterator[_Passage]:
    fits = _Measure(markdown, settings.parent_size, settings.parent_tokens, count)
    path: list[Block] = []
    held: _Passage | None = None
    bare = True  # nothing but headings is held
    for block in blocks(markdown):
        if block.kind == "heading":
            if held and not bare:
                yield held
                held = None
            path = [*(above for above in path if above.level < block.level), block]
        heading = " > ".join(above.title for above in path if above.title)
        joined = held and _Piece(held.piece.start, block.end)
        if held and joined and fits(joined.start, joined.end):
            held = _Passage(joined, heading, [*held.parts, (block, (block.start, block.end))])
        else:
            if held and not bare:
                yield held
                held = None
            above, held = held, None  # headings that wait for their first text
            for passage in _cut_passages(markdown, block, above, heading, settings, count):
                if held:
                    yield held
                held = passage
            if held and not held.piece.whole:
                yield held
                held = None
        bare = block.kind == "heading" and (bare or held is None or len(held.parts) == 1)
    if held:
        yield held


def _cut_passages(
    markdown: str,
    block: Block,
    above: _Passage | None,
    heading: str,
    settings: ParentChildSettings,
    count: TokenCounter,
) -> Iterator[_Passage]:
    """Cut a block into passages; the first one takes the headings above along, if they leave room."""
    span = (block.start, block.end)
    reserve = block.start - above.piece.start if above else 0
    room = min(settings.parent_size, settings.parent_tokens or settings.parent_size)
    if above and reserve > room // 4:
        yield above
        above, reserve = None, 0
    for piece in _cut(markdown, block, span, settings, count, PARENT, reserve):
        parts = [(block, (piece.start, piece.end))]
        if above:
            piece = replace(piece, start=above.piece.start)
            parts = [*above.parts, *parts]
            above = None
        yield _Passage(piece, heading, parts)


def _children(markdown: str, passage: _Passage, settings: ParentChildSettings, count: TokenCounter) -> list[_Piece]:
    size = settings.child_size - settings.child_overlap
    fits = _Measure(markdown, size, settings.child_tokens, count)
    whole = passage.piece
    if whole.whole and fits(whole.start, whole.end):
        return [whole]
    pieces: list[_Piece] = []
    for block, span in passage.parts:
        for piece in _cut(markdown, block, span, settings, count, CHILD):
            before = pieces[-1] if pieces else None
            if before and before.whole and piece.whole and fits(before.start, piece.end):
                pieces[-1] = _Piece(before.start, piece.end)
            else:
                pieces.append(piece)
    return _overlapped(markdown, pieces, settings.child_overlap)


def _cut(
    markdown: str,
    block: Block,
    span: Span,
    settings: ParentChildSettings,
    count: TokenCounter,
    level: int,
    reserve: int = 0,
) -> list[_Piece]:
    """Cut the part of a block that lies in ``span`` into pieces that fit on a level, less ``reserve`` characters."""
    if level == PARENT:
        size, tokens = settings.parent_size - reserve, settings.parent_tokens
        tokens = tokens and tokens - reserve
    else:
        size, tokens = settings.child_size - settings.child_overlap, settings.child_tokens
    start, end = span
    fits = _Measure(markdown, size, tokens, count)
    if fits(start, end) and (start == block.start or block.kind == "text"):
        return [_Piece(start, end)]
    head, tail = _frame(markdown, block)
    if not head or len(head) + len(tail) > size // 2 or (tokens and count(head + tail) > tokens // 2):
        return [_Piece(*found) for found in pack(spans(markdown, start, end, fits, longest=size), fits)]
    fits = _Measure(markdown, size, tokens, count, around=head + tail)
    units = _lines(markdown, max(start, block.body), end, fits, size)
    pieces = [_Piece(*found, prefix=head, suffix=tail) for found in pack(units, fits)]
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


def _lines(markdown: str, start: int, end: int, fits: _Measure, longest: int) -> Iterator[Span]:
    for line in LINE.finditer(markdown, start, end):
        if fits(line.start(), line.end()):
            yield line.span()
        else:
            yield from pack(spans(markdown, *line.span(), fits, longest=min(longest, fits.size)), fits)


def _overlapped(markdown: str, pieces: list[_Piece], overlap: int) -> list[_Piece]:
    """Let each piece begin up to ``overlap`` characters earlier, at a word or character boundary."""
    if not overlap:
        return pieces
    found = pieces[:1]
    for before, piece in pairwise(pieces):
        start = piece.start
        if piece.whole and before.whole:
            earliest = max(before.start + 1, start - overlap)
            begun = next(iter(spans(markdown, earliest, start, lambda a, b: True, longest=overlap)), (start, start))
            start = begun[1] if begun[1] < start else earliest
        found.append(replace(piece, start=start))
    return found


def _stripped(markdown: str, start: int, end: int) -> Span:
    """Move both ends inward over white space."""
    while start < end and markdown[start].isspace():
        start += 1
    while end > start and markdown[end - 1].isspace():
        end -= 1
    return start, end
