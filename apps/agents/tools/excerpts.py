"""The part of a passage that a query is about. Pure."""

import re
from collections import Counter
from itertools import pairwise

FOCUS = 1  # terms of one place only, that the focus is worth
CJK = re.compile(r"[\u3400-\u9fff]")
SENTENCE_END = re.compile(r"(?<=[。！？；!?])|(?<=[.;])\s+|\n+")


def terms(text: str) -> set[str]:
    """Return what two texts are compared by: lower-case words, and pairs of Chinese characters."""
    found: set[str] = set()
    for run in re.findall(r"[A-Za-z0-9]+|[\u3400-\u9fff]+", text.lower()):
        if CJK.match(run):
            found.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        else:
            found.add(run)
    return found


def excerpt(text: str, query: str, *, limit: int, focus: int | None = None) -> str:
    """Return at most about ``limit`` characters of whole sentences around the query's terms.

    ``focus`` is a character that should be in it, where the search knows one. A text within the limit
    comes back whole; cut ends are marked with "…".
    """
    if len(text) <= limit:
        return text
    wanted = terms(query)
    spans = _sentences(text)
    found = [wanted & terms(text[start:end]) for start, end in spans]
    often = Counter(term for sentence in found for term in sentence)
    scores = [
        sum(1 / often[term] for term in sentence) + FOCUS * (focus is not None and start <= focus < end)
        for sentence, (start, end) in zip(found, spans, strict=True)
    ]
    best = max(range(len(spans)), key=lambda i: (scores[i], -i))
    low = high = best
    while True:
        before = low > 0 and spans[high][1] - spans[low - 1][0] <= limit
        after = high + 1 < len(spans) and spans[high + 1][1] - spans[low][0] <= limit
        if after and (not before or scores[high + 1] >= scores[low - 1]):
            high += 1
        elif before:
            low -= 1
        else:
            break
    start, end = spans[low][0], min(spans[high][1], spans[low][0] + limit)
    return ("…" if start > 0 else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _sentences(text: str) -> list[tuple[int, int]]:
    cuts = [match.end() for match in SENTENCE_END.finditer(text)]
    edges = [0, *(cut for cut in cuts if 0 < cut < len(text)), len(text)]
    return [(a, b) for a, b in pairwise(edges) if b > a]
