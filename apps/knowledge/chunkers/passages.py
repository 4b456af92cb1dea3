"""A document cut into passages: none crosses a heading, paragraphs, tables and code stay whole where they fit.

What is larger than a passage is cut between sentences, rows or lines.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from apps.knowledge.chunkers.blocks import Block, blocks
from apps.knowledge.chunkers.drafts import TokenCounter
from apps.knowledge.chunkers.pieces import Limit, Measure, Piece, cut
from apps.knowledge.chunkers.splitting import Span


@dataclass(slots=True)
class Passage:
    """A passage: its stretch, its path of headings, and the blocks it is made of."""

    piece: Piece
    heading: str
    parts: list[tuple[Block, Span]]


def passages(
    markdown: str,
    limit: Limit,
    count: TokenCounter,
    *,
    stretch: Span | None = None,
    deepest: int = 6,
    breaks: Sequence[int] = (),
) -> Iterator[Passage]:
    """Yield the passages of a document in reading order.

    Args:
        markdown: the whole document.
        stretch: the part of it that is cut, all of it where it is None.
        limit: of one passage.
        count: counts tokens as the embedding model does.
        deepest: the level of headings that still begin a passage; deeper ones stand inside.
        breaks: sorted places at which a passage ends, whatever else would fit into it.
    """
    fits = Measure(markdown, limit, count)
    path: list[Block] = []
    held: Passage | None = None
    bare = True  # nothing but headings is held
    for block in _broken(markdown, stretch or (0, len(markdown)), breaks):
        begins = block.kind == "heading" and block.level <= deepest
        if held and ((begins and not bare) or _apart(breaks, held.piece.start, block.start)):
            yield held
            held = None
        if begins:
            path = [*(above for above in path if above.level < block.level), block]
        heading = " > ".join(above.title for above in path if above.title)
        joined = held and Piece(held.piece.start, block.end)
        if held and joined and fits(joined.start, joined.end):
            held = Passage(joined, heading, [*held.parts, (block, (block.start, block.end))])
        else:
            if held and not bare:
                yield held
                held = None
            above, held = held, None  # headings that wait for their first text
            for passage in _cut_passages(markdown, block, above, heading, limit, count):
                if held:
                    yield held
                held = passage
            if held and not held.piece.whole:
                yield held
                held = None
        bare = block.kind == "heading" and (bare or held is None or len(held.parts) == 1)
    if held:
        yield held


def _broken(markdown: str, stretch: Span, breaks: Sequence[int]) -> Iterator[Block]:
    """Yield the blocks, those of text cut at the breaks inside them."""
    for block in blocks(markdown, *stretch):
        if block.kind != "text":
            yield block
            continue
        start = block.start
        for place in breaks[bisect_right(breaks, start) : bisect_right(breaks, block.end - 1)]:
            yield replace(block, start=start, end=place, body=start)
            start = place
        yield replace(block, start=start, body=start)


def _apart(breaks: Sequence[int], start: int, end: int) -> bool:
    """Whether a break lies after ``start`` and not after ``end``."""
    return bisect_right(breaks, end) > bisect_right(breaks, start)


def _cut_passages(
    markdown: str, block: Block, above: Passage | None, heading: str, limit: Limit, count: TokenCounter
) -> Iterator[Passage]:
    """Cut a block into passages; the first one takes the headings above along, if they leave room."""
    reserve = block.start - above.piece.start if above else 0
    if above and reserve > min(limit.size, limit.tokens or limit.size) // 4:
        yield above
        above, reserve = None, 0
    for piece in cut(markdown, block, (block.start, block.end), limit.less(reserve), count):
        parts = [(block, (piece.start, piece.end))]
        if above:
            piece = replace(piece, start=above.piece.start)
            parts = [*above.parts, *parts]
            above = None
        yield Passage(piece, heading, parts)


def divided(markdown: str, passage: Passage, limit: Limit, count: TokenCounter) -> list[Passage]:
    """Return the parts of a passage that fit a smaller limit, in order; itself where it fits."""
    fits = Measure(markdown, limit, count)
    if passage.piece.whole and fits(passage.piece.start, passage.piece.end):
        return [passage]
    parts: list[Passage] = []
    for block, span in passage.parts:
        before = parts[-1] if parts else None
        bare = before is not None and all(part.kind == "heading" for part, _span in before.parts)
        reserve = span[0] - before.piece.start if before and bare else 0
        if reserve > limit.size // 4:
            reserve = 0
        for piece in cut(markdown, block, span, limit.less(reserve), count):
            own = (block, (piece.start, piece.end))
            before = parts[-1] if parts else None
            joins = before is not None and before.piece.whole and not piece.prefix
            if before and joins and fits(before.piece.start, piece.end) and (piece.whole or reserve):
                before.piece = replace(piece, start=before.piece.start)
                before.parts.append(own)
            else:
                parts.append(Passage(piece, passage.heading, [own]))
            reserve = 0
    return parts
