"""Markdown as a list of blocks with offsets: headings, paragraphs, tables, code.

Only what cutting needs is recognised, by CommonMark's rules for fences and headings; a full parser
gives no offsets into the source that survive to the chunk.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
DELIMITER_ROW = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
LINE = re.compile(r"[^\n]*\n|[^\n]+")
LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
LONGEST_HEADING = 250  # characters; a longer line is text, and no pattern is tried on it
LONGEST_MARK = 4_000  # the same for the rows of a table and the rest
MARKS = re.compile(r"[*_`]+|!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``kind`` is heading, text, table or code.

    ``body`` is where a table's rows or a code block's lines begin, so ``[start:body]`` is what has to
    be repeated when the block is split; elsewhere it equals ``start``. ``closer`` is a fence's end.
    """

    kind: str
    start: int
    end: int
    body: int
    level: int = 0
    title: str = ""
    closer: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    start: int
    end: int


def blocks(markdown: str, start: int = 0, end: int | None = None) -> Iterator[Block]:
    """Yield the blocks of a stretch in order. Blank lines belong to no block; everything else belongs to one."""
    stretch = LINE.finditer(markdown, start, len(markdown) if end is None else end)
    lines = [_Line(m.group().rstrip("\n"), m.start(), m.end()) for m in stretch]
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.text.strip():
            at += 1
            continue
        for find in (_fence, _heading, _table) if len(line.text) <= LONGEST_MARK else ():
            found = find(lines, at)
            if found:
                break
        else:
            found = _text(lines, at)
        block, at = found
        yield block


def _fence(lines: list[_Line], at: int) -> tuple[Block, int] | None:
    opened = FENCE.match(lines[at].text)
    if not opened:
        return None
    marker = opened.group(1)
    closing = re.compile(r" {0,3}" + re.escape(marker[0]) + "{" + str(len(marker)) + r",}[ \t]*$")
    for index in range(at + 1, len(lines)):
        if closing.match(lines[index].text):
            end = index + 1
            break
    else:
        end = len(lines)  # an unclosed fence runs to the end of the document
    body = lines[at].end
    return Block("code", lines[at].start, lines[end - 1].end, body, closer=marker), end


def _heading(lines: list[_Line], at: int) -> tuple[Block, int] | None:
    line = lines[at]
    if len(line.text) > LONGEST_HEADING:
        return None
    match = HEADING.match(line.text)
    if match:
        title = plain(match.group(2) or "")
        return Block("heading", line.start, line.end, line.start, len(match.group(1)), title), at + 1
    following = lines[at + 1].text if at + 1 < len(lines) else ""
    under = UNDERLINE.match(following) if len(following) <= LONGEST_HEADING else None
    plain_line = not LIST_ITEM.match(line.text) and "|" not in line.text and not line.text.startswith(("    ", ">"))
    if under and plain_line and not UNDERLINE.match(line.text):
        level = 1 if under.group(1)[0] == "=" else 2
        return Block("heading", line.start, lines[at + 1].end, line.start, level, plain(line.text)), at + 2
    return None


def _table(lines: list[_Line], at: int) -> tuple[Block, int] | None:
    if "|" not in lines[at].text or at + 1 >= len(lines):
        return None
    rule = lines[at + 1].text
    if "-" not in rule or len(rule) > LONGEST_MARK or not DELIMITER_ROW.match(rule):
        return None
    end = at + 2
    while end < len(lines) and "|" in lines[end].text:
        end += 1
    return Block("table", lines[at].start, lines[end - 1].end, lines[at + 1].end), end


def _is_heading(text: str) -> bool:
    return len(text) <= LONGEST_HEADING and HEADING.match(text) is not None


def _text(lines: list[_Line], at: int) -> tuple[Block, int]:
    end = at + 1
    while end < len(lines):
        text = lines[end].text
        if len(text) > LONGEST_MARK:
            end += 1
            continue
        if not text.strip() or FENCE.match(text) or _is_heading(text) or _table(lines, end):
            break
        end += 1
    return Block("text", lines[at].start, lines[end - 1].end, lines[at].start), end


def plain(text: str) -> str:
    """Return a heading's words without emphasis, code marks and link targets."""
    return MARKS.sub(lambda match: match.group(1) or "", text).strip()
