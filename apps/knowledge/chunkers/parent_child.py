"""Chunker "parent_child": passages that are read and cited, cut into children that are searched.

A passage never crosses a heading, keeps paragraphs, tables and code whole where they fit, and
carries its path of headings. What is larger than a passage is cut between sentences, rows or lines;
a table's header and a code block's fence are repeated around each part. A passage that is no longer
than a child has no children: it is its own.

Sizes are in characters of the chunk's text; ``*_tokens`` are in tokens of the model that embeds,
so that no part of a passage is cut off unread by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from apps.knowledge.chunkers.delimiters import Delimited
from apps.knowledge.chunkers.drafts import CHILD, PARENT, ChunkDraft, PageMark, TokenCounter
from apps.knowledge.chunkers.passages import Passage, divided, passages
from apps.knowledge.chunkers.pieces import Limit, Piece, drafted, overlapped
from apps.knowledge.chunkers.settings import SettingRefused, check_overlap, check_tokens, number, token_limit

SMALLEST = 50


@dataclass(frozen=True, slots=True)
class ParentChildSettings(Delimited):
    """Limits of one chunk. A token limit of 0 means that only characters count."""

    parent_size: int = number(1_400, least=SMALLEST)
    parent_tokens: int = token_limit(460)
    child_size: int = number(384, least=SMALLEST)
    child_tokens: int = token_limit(460)
    child_overlap: int = number(0, least=0)

    def check(self) -> None:
        """Refuse sizes that cannot hold, or an overlap that would leave no room for anything new."""
        Delimited.check(self)
        check_tokens(self, "parent_tokens", "child_tokens")
        if self.child_size > self.parent_size:
            raise SettingRefused("child_size", "must not be larger than parent_size")
        check_overlap(self, "child_overlap", "child_size", "child_tokens")

    def within(self, limit: int) -> Self:
        """Return the same settings with both token limits at most ``limit``; no limit becomes that one."""
        parent, child = (min(tokens or limit, limit) for tokens in (self.parent_tokens, self.child_tokens))
        return replace(
            self, parent_tokens=parent, child_tokens=child, child_overlap=min(self.child_overlap, child // 2)
        )


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

    def add(level: int, parent: int | None, piece: Piece, heading: str) -> bool:
        draft = drafted(markdown, pages, piece, level=level, ordinal=ordinals[level], parent=parent, heading=heading)
        if draft is None:
            return False
        drafts.append(draft)
        ordinals[level] += 1
        return True

    limit = Limit(settings.parent_size, settings.parent_tokens)
    for passage in passages(markdown, limit, count_tokens, breaks=settings.breaks(markdown)):
        if not add(PARENT, None, passage.piece, passage.heading):
            continue
        parent = len(drafts) - 1
        children = _children(markdown, passage, settings, count_tokens)
        if len(children) > 1:
            for child in children:
                add(CHILD, parent, child, passage.heading)
    return drafts


def _children(markdown: str, passage: Passage, settings: ParentChildSettings, count: TokenCounter) -> list[Piece]:
    limit = Limit(settings.child_size, settings.child_tokens).less(settings.child_overlap)
    children = divided(markdown, passage, limit, count)
    return overlapped(markdown, [child.piece for child in children], settings.child_overlap)
