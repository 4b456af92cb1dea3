"""Which part of a passage to show for a question, and which of its words to mark. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from apps.knowledge.index_text import fold, query_terms, terms

SHOWN = 360  # characters of a passage in a list of hits
LEAD = 60  # of them before the first marked word
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*(?:\+\+|#)?")
_SPACE = re.compile(r"\s+")
_MARKDOWN = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+|`+|\*\*|^[ \t]*\|?[ \t:|-]{3,}$", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|(.*?)\|?[ \t]*$", re.MULTILINE)
_PIPE = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of text, marked or not."""

    text: str
    marked: bool = False


def excerpt(text: str, query: str, *, shown: int = SHOWN, focus: int | None = None) -> list[Part]:
    """Return the stretch of a passage where most of the question's words stand, cut into parts.

    Where none of them stands, as in another language, it is the one around ``focus``, a character of the passage.

    Marks of Markdown are left out, and the cells of a table stand apart by a dot. Words are compared as the index
    compares them: folded, stemmed, Chinese ones wherever they stand.
    """
    before = _plain(text[: focus or 0])
    text = _plain(text)
    places = marks(text, query_terms(query))
    start, end = _window(text, places or [(len(before), len(before))], shown)
    parts = [Part("… ")] if start else []
    at = start
    for begin, stop in places:
        if begin < at or stop > end:
            continue
        if begin > at:
            parts.append(Part(text[at:begin]))
        parts.append(Part(text[begin:stop], marked=True))
        at = stop
    parts.append(Part(text[at:end]))
    if end < len(text):
        parts.append(Part(" …"))
    return [part for part in parts if part.text]


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _ROW.sub(_cells, _MARKDOWN.sub("", text))).strip()


def _cells(row: re.Match[str]) -> str:
    cells = (cell.strip().replace("\\|", "|") for cell in _PIPE.split(row.group(1)))
    return " · ".join(cell for cell in cells if cell)


def marks(text: str, wanted: Mapping[str, float]) -> list[tuple[int, int]]:
    """Return where the terms of a question stand in a text, in order; those with only a space between them joined."""
    found: list[tuple[int, int]] = []
    folded = _folded(text)
    least = min(2, max(map(len, wanted), default=1))  # the last character of a longer question says nothing alone
    for term in wanted:
        if not term.isascii() and len(term) >= least:
            at = folded.find(term)
            while at >= 0:
                found.append((at, at + len(term)))
                at = folded.find(term, at + 1)
    words = [word for word in _WORD.finditer(folded) if word.group().isascii()]
    found += [word.span() for word in words if any(term in wanted for term in terms(word.group()))]
    joined: list[tuple[int, int]] = []
    for begin, stop in sorted(found):
        if joined and not text[joined[-1][1] : begin].strip(" "):
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((begin, stop))
    return joined


def _folded(text: str) -> str:
    """Fold character by character, so that places stay what they are."""
    folded = (fold(character) for character in text)
    return "".join(new if len(new) == 1 else old for new, old in zip(folded, text, strict=True))


def _window(text: str, places: list[tuple[int, int]], shown: int) -> tuple[int, int]:
    """Return the stretch of at most ``shown`` characters that holds the most marked ones, begun at a word."""
    if len(text) <= shown:
        return 0, len(text)
    best, most = 0, -1
    for begin, _stop in places:
        start = min(max(0, begin - LEAD), len(text) - shown)
        held = sum(stop - first for first, stop in places if start <= first and stop <= start + shown)
        if held > most:
            best, most = start, held
    gap = text.find(" ", best, best + 20) if best else -1
    start = gap + 1 if gap >= 0 else best
    return start, min(len(text), start + shown)
