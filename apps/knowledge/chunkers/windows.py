"""A long document in windows, which are cut one by one: no more than one of them is in memory.

A window ends before a heading, or at a blank line where none comes, outside fenced code. So most documents are
one window, and in the others no passage would have crossed its border anyway.
"""

import io
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from apps.knowledge.chunkers.blocks import FENCE, HEADING, LONGEST_HEADING, LONGEST_MARK, Block, blocks
from apps.knowledge.chunkers.drafts import ChunkDraft, PageMark

LONGEST = 1_000_000  # characters from which a heading ends a window; twice as many: a blank line; four times: any line
Heading = tuple[int, str]  # level, title


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a document: its text, how many characters stand before it, and the headings that it lies below."""

    text: str
    start: int = 0
    above: tuple[Heading, ...] = ()


def in_windows(markdown: str | TextIO) -> Iterator[Window]:
    """Yield the windows of a document, in order: together they are its text."""
    longest = LONGEST
    if isinstance(markdown, str):
        if len(markdown) <= longest:
            yield Window(markdown)
            return
        markdown = io.StringIO(markdown, newline="\n")
    parts: list[str] = []
    size = start = 0
    above: tuple[Heading, ...] = ()
    fence: re.Pattern[str] | None = None
    while line := markdown.readline(longest):
        if _ends(size, longest, line, parts[-1] if parts else "", fenced=fence is not None):
            window = Window("".join(parts), start, above)
            yield window
            above = _below(window)
            start += size
            parts, size = [], 0
        fence = _fence(line, fence)
        parts.append(line)
        size += len(line)
    if parts:
        yield Window("".join(parts), start, above)


def _ends(size: int, longest: int, line: str, before: str, *, fenced: bool) -> bool:
    if size < longest or (fenced and size < 4 * longest):
        return False
    heads = len(line) <= LONGEST_HEADING and HEADING.match(line.rstrip("\n"))
    return bool(heads) or (size >= 2 * longest and not before.strip()) or size >= 4 * longest


def _fence(line: str, fence: re.Pattern[str] | None) -> re.Pattern[str] | None:
    """Return what closes the fence that is open after a line, as ``blocks`` sees it."""
    text = line.rstrip("\n")
    if fence:
        return None if fence.match(text) else fence
    opened = FENCE.match(text) if len(text) <= LONGEST_MARK else None
    if not opened:
        return None
    marker = opened.group(1)
    return re.compile(r" {0,3}" + re.escape(marker[0]) + "{" + str(len(marker)) + r",}[ \t]*$")


def _headings(text: str, deepest: int) -> list[Block]:
    return [block for block in blocks(text) if block.kind == "heading" and block.level <= deepest]


def _below(window: Window) -> tuple[Heading, ...]:
    """Return the path of headings at the end of a window."""
    path = list(window.above)
    for block in _headings(window.text, 6):
        path = [*(head for head in path if head[0] < block.level), (block.level, block.title)]
    return tuple(path)


def pages_of(window: Window, pages: Sequence[PageMark]) -> list[PageMark]:
    """Return the pages that have a part in a window, with offsets into it."""
    if not window.start:
        inside = bisect_right(pages, len(window.text), key=lambda mark: mark.start)
        return list(pages[: max(inside, 1)])
    first = max(bisect_right(pages, window.start, key=lambda mark: mark.start) - 1, 0)
    last = bisect_right(pages, window.start + len(window.text), key=lambda mark: mark.start)
    return [replace(mark, start=max(0, mark.start - window.start)) for mark in pages[first:last]]


def placed(drafts: Sequence[ChunkDraft], window: Window, ordinals: Mapping[int, int], deepest: int) -> list[ChunkDraft]:
    """Return the drafts of a window as those of the document: ordinals, offsets, and the headings above it."""
    # What lies above the window holds for a path within it as far as no heading so far was as high. A draft is told
    # by its path and not by its place: it may begin with what it repeats of the one before.
    held: dict[str, int] = {"": deepest + 1}
    path: list[Block] = []
    lowest = deepest + 1
    for block in _headings(window.text, deepest):
        path = [*(head for head in path if head.level < block.level), block]
        lowest = min(lowest, block.level)
        held.setdefault(" > ".join(head.title for head in path if head.title), lowest)
    made = []
    for draft in drafts:
        least = held.get(draft.heading, deepest + 1)
        above = [title for level, title in window.above if level < least and title]
        made.append(
            replace(
                draft,
                ordinal=draft.ordinal + ordinals.get(draft.level, 0),
                start=draft.start + window.start,
                end=draft.end + window.start,
                heading=" > ".join([*above, draft.heading] if draft.heading else above),
            )
        )
    return made
