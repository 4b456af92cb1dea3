"""Cut a stretch of text at the best places that keep every piece within a limit.

Best first: after a sentence, after a clause, at white space, anywhere that is not inside what a
reader sees as one character.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

CLOSING = "。，、；：！？…—,.;:!?)]}）】》」』〉〕”’％%"
_CLOSERS = "[”’」』）】》〉〕\"')\\]]*"
BOUNDARIES = (
    re.compile(rf"[。！？；…]+{_CLOSERS}\s*|(?<![.!?;])[.!?;]++[\"'”’)\]]*+\s+|\n+"),
    re.compile(rf"[，、：]+{_CLOSERS}\s*|[,:]\s+"),
    re.compile(r"\s+"),
)
Fits = Callable[[int, int], bool]
Span = tuple[int, int]


def spans(text: str, start: int, end: int, fits: Fits, *, longest: int) -> Iterator[Span]:
    """Yield touching spans that cover ``[start:end]``, each of which ``fits``.

    A span is as small as its best boundary makes it (usually one sentence); packing is the
    caller's. ``longest`` is a length in characters above which nothing fits, so that hard cuts
    start there instead of by trial.
    """
    yield from _split(text, start, end, fits, longest, 0)


def _split(text: str, start: int, end: int, fits: Fits, longest: int, rank: int) -> Iterator[Span]:
    if rank == len(BOUNDARIES):
        yield from _hard(text, start, end, fits, longest)
        return
    for piece in _pieces(text, start, end, BOUNDARIES[rank]):
        if piece[1] - piece[0] <= longest and fits(*piece):
            yield piece
        else:
            yield from pack(_split(text, *piece, fits, longest, rank + 1), fits)


def _pieces(text: str, start: int, end: int, boundary: re.Pattern[str]) -> Iterator[Span]:
    at = start
    for match in boundary.finditer(text, start, end):
        cut = match.end()
        if cut >= end:
            break
        if text[cut] in CLOSING:
            continue
        if cut > at:
            yield at, cut
            at = cut
    if at < end:
        yield at, end


def _hard(text: str, start: int, end: int, fits: Fits, longest: int) -> Iterator[Span]:
    at = start
    while at < end:
        length = min(longest, end - at)
        while length > 1 and not fits(at, at + length):
            length = max(1, length // 2)
        cut = _whole_character(text, at, at + length) if at + length < end else end
        yield at, cut
        at = cut


def _whole_character(text: str, start: int, cut: int) -> int:
    """Move a cut back, by at most 32 characters, to where a chunk may begin; always past ``start``."""
    best = cut
    for _ in range(32):
        if best <= start + 1:
            return cut
        if not _continues(text, best):
            return best
        best -= 1
    return cut


def _continues(text: str, at: int) -> bool:
    """Whether the character at ``at`` belongs to the one before it, or closes it."""
    here, before = text[at], text[at - 1]
    if here in CLOSING or unicodedata.combining(here) or "\ufe00" <= here <= "\ufe0f":
        return True
    if "\U0001f3fb" <= here <= "\U0001f3ff" or "\u200d" in (here, before):
        return True
    return unicodedata.category(here) in ("Mc", "Mn", "Me") or (
        "\U0001f1e6" <= here <= "\U0001f1ff" >= before >= "\U0001f1e6"
    )


def pack(pieces: Iterable[Span], fits: Fits) -> Iterator[Span]:
    """Join touching pieces while the joined one fits; a piece that does not fit stays alone."""
    held: Span | None = None
    for piece in pieces:
        if held is None:
            held = piece
        elif fits(held[0], piece[1]):
            held = held[0], piece[1]
        else:
            yield held
            held = piece
    if held is not None:
        yield held
