"""Chunker "by_heading": one chunk a section, for documents whose headings say what belongs together.

Headings down to ``heading_level`` begin a chunk, deeper ones stand inside. A section that is too large
is cut as passages are: between paragraphs, then sentences, rows or lines, with a table's header or a
code block's fence repeated. A chunk is what is read and cited, and what is searched.

``size`` and ``overlap`` are in characters, ``tokens`` in tokens of the model that embeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from apps.knowledge.chunkers.delimiters import Delimited
from apps.knowledge.chunkers.drafts import PARENT, ChunkDraft, PageMark, TokenCounter
from apps.knowledge.chunkers.passages import passages
from apps.knowledge.chunkers.pieces import Limit, Piece, drafted, overlapped
from apps.knowledge.chunkers.settings import check_overlap, check_tokens, number, token_limit


@dataclass(frozen=True, slots=True)
class ByHeadingSettings(Delimited):
    """Limits of one chunk, and which headings begin one."""

    size: int = number(1_400, least=50)
    tokens: int = token_limit(460)
    overlap: int = number(0, least=0)
    heading_level: int = number(3, least=1, most=6, unit="levels")

    def check(self) -> None:
        """Refuse also an overlap that would leave no room for anything new."""
        Delimited.check(self)
        check_tokens(self, "tokens")
        check_overlap(self, "overlap", "size", "tokens")

    def within(self, limit: int) -> Self:
        """Return the same settings with at most ``limit`` tokens."""
        tokens = min(self.tokens or limit, limit)
        return replace(self, tokens=tokens, overlap=min(self.overlap, tokens // 2))


def chunk(
    markdown: str, pages: Sequence[PageMark], settings: ByHeadingSettings, count_tokens: TokenCounter
) -> list[ChunkDraft]:
    """Cut a document into sections. Arguments and errors are those of ``parent_child.chunk``."""
    settings.check()
    limit = Limit(settings.size, settings.tokens).less(settings.overlap)
    found = passages(markdown, limit, count_tokens, deepest=settings.heading_level, breaks=settings.breaks(markdown))
    drafts: list[ChunkDraft] = []
    section: list[Piece] = []
    heading = ""
    for passage in found:
        section, heading = ([section[-1]] if passage.heading == heading and section else []), passage.heading
        section.append(passage.piece)
        piece = overlapped(markdown, section, settings.overlap)[-1]
        draft = drafted(markdown, pages, piece, level=PARENT, ordinal=len(drafts), parent=None, heading=heading)
        if draft:
            drafts.append(draft)
    return drafts
