"""Chunker "three_level": large, middle and small stretches of each page, the small ones searched.

A small hit (L3) brings the middle stretch around it (L2), or the large one (L1), where several of their
parts are hit. No chunk crosses a page. Sizes and overlaps are in characters; an overlap is what a
chunk repeats from the end of the one before it, so that each level without its overlaps is the page.
Tables and code are cut between rows and lines, with header or fence repeated.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self
from uuid import UUID

from apps.knowledge.chunkers.blocks import Block, blocks
from apps.knowledge.chunkers.drafts import MIDDLE, OUTER, PARENT, ChunkDraft, PageMark, TokenCounter
from apps.knowledge.chunkers.passages import Passage, divided, passages
from apps.knowledge.chunkers.pieces import Limit, drafted, overlapped
from apps.knowledge.chunkers.settings import (
    ChunkerSettings,
    SettingRefused,
    check_overlap,
    check_tokens,
    number,
    token_limit,
)

NUMBERS = {OUTER: 1, MIDDLE: 2, PARENT: 3}  # a chunk's level in the database, and in its key


@dataclass(frozen=True, slots=True)
class ThreeLevelSettings(ChunkerSettings):
    """Sizes of the three levels. ``l3_tokens``, 0 for no limit, keeps the model that embeds from leaving any unread."""

    l1_size: int = number(2_400, least=100)
    l1_overlap: int = number(400, least=0)
    l2_size: int = number(1_600, least=100)
    l2_overlap: int = number(200, least=0)
    l3_size: int = number(800, least=50)
    l3_overlap: int = number(100, least=0)
    l3_tokens: int = token_limit(0)

    def check(self) -> None:
        """Refuse also levels that are not smaller than the one above, or overlaps that leave no room."""
        ChunkerSettings.check(self)
        check_tokens(self, "l3_tokens")
        for inner, outer in (("l2_size", "l1_size"), ("l3_size", "l2_size")):
            if getattr(self, inner) > getattr(self, outer):
                raise SettingRefused(inner, f"must not be larger than {outer}")
        check_overlap(self, "l1_overlap", "l1_size")
        check_overlap(self, "l2_overlap", "l2_size")
        check_overlap(self, "l3_overlap", "l3_size", "l3_tokens")

    def within(self, limit: int) -> Self:
        """Return the same settings with at most ``limit`` tokens in what is embedded."""
        tokens = min(self.l3_tokens or limit, limit)
        return replace(self, l3_tokens=tokens, l3_overlap=min(self.l3_overlap, tokens // 2))


class _Level(NamedTuple):
    """One level: its number in the database, what one chunk of it may hold without its overlap, and that."""

    level: int
    limit: Limit
    overlap: int


def key(document_id: UUID | str, *, page: int | None, level: int, ordinal: int) -> str:
    """Return a chunk's id as file::page::level::ordinal, level 1 to 3, page 0 where the format has none."""
    return f"{document_id}::{page or 0}::{NUMBERS[level]}::{ordinal}"


def chunk(
    markdown: str, pages: Sequence[PageMark], settings: ThreeLevelSettings, count_tokens: TokenCounter
) -> list[ChunkDraft]:
    """Cut a document into its three levels, each chunk before its parts. Arguments as in ``parent_child.chunk``."""
    settings.check()
    return list(_drafts(markdown, pages, settings, count_tokens))


def _drafts(
    markdown: str, pages: Sequence[PageMark], settings: ThreeLevelSettings, count: TokenCounter
) -> Iterator[ChunkDraft]:
    levels = _levels(settings)
    headings = _Headings(markdown)
    ordinals = {level.level: 0 for level in levels}
    written = 0

    def cut(found: list[Passage], at: int, parent: int | None, earliest: int) -> Iterator[ChunkDraft]:
        nonlocal written
        level = levels[at]
        pieces = overlapped(markdown, [one.piece for one in found], level.overlap, earliest=earliest)
        for core, piece in zip(found, pieces, strict=True):
            place = ordinals[level.level]
            heading = headings.at(core.piece.start)
            draft = drafted(markdown, pages, piece, level=level.level, ordinal=place, parent=parent, heading=heading)
            if draft is None:
                continue
            own, written = written, written + 1
            ordinals[level.level] += 1
            yield draft
            if at + 1 < len(levels):
                yield from cut(divided(markdown, core, levels[at + 1].limit, count), at + 1, own, draft.start)

    starts = [mark.start for mark in pages] or [0]
    starts[0] = 0  # what stands before the first page belongs to it
    for start, end in pairwise([*starts, len(markdown)]):
        page = list(passages(markdown, levels[0].limit, count, stretch=(start, end), deepest=0))
        yield from cut(page, 0, None, start)


def _levels(settings: ThreeLevelSettings) -> list[_Level]:
    return [
        _Level(OUTER, Limit(settings.l1_size - settings.l1_overlap), settings.l1_overlap),
        _Level(MIDDLE, Limit(settings.l2_size - settings.l2_overlap), settings.l2_overlap),
        _Level(PARENT, Limit(settings.l3_size, settings.l3_tokens).less(settings.l3_overlap), settings.l3_overlap),
    ]


class _Headings:
    """The path of headings at each place of a document."""

    def __init__(self, markdown: str) -> None:
        self._starts: list[int] = []
        self._paths = [""]
        path: list[Block] = []
        for block in blocks(markdown):
            if block.kind == "heading":
                path = [*(above for above in path if above.level < block.level), block]
                self._starts.append(block.start)
                self._paths.append(" > ".join(above.title for above in path if above.title))

    def at(self, place: int) -> str:
        return self._paths[bisect_right(self._starts, place)]
