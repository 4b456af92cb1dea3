"""Which part of a passage a claim rests on, so that a reader's eye lands on it. Pure text."""

import re
from itertools import pairwise

# Paragraphs end at an empty line; list items and table rows are paragraphs of their own.
PARAGRAPH_BORDER = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+|•]|[（(]?(?:\d+|[一二三四五六七八九十]+)[.)）、]))")
SENTENCE = re.compile(r"[^。！？!?；;\n]*?(?:[。！？!?；;]+|\.(?=\s|$)|\n|$)")
TERM = re.compile(r"[a-z0-9]+|[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]")
# A clause before a semicolon belongs to its claim.
STATEMENT = re.compile(r"[^。！？!?\n]*?(?:[。！？!?]+|\.(?=\s|$)|\n|$)")
LONG_PARAGRAPH = 400
LEAST_OVERLAP = 0.2


def best_span(passage: str, claim: str) -> tuple[int, int]:
    """Return start and end, within ``passage``, of the paragraph that shares most with ``claim``.

    Of a long paragraph only its best sentence or line. Where nothing is shared (another language, a
    free paraphrase) the whole passage: a wrong spot would be worse than a wide one.
    """
    terms = _terms(claim)
    spans = [
        piece
        for span in _paragraphs(passage)
        for piece in ([span] if span[1] - span[0] <= LONG_PARAGRAPH else _sentences(passage, *span))
    ]
    best = max(spans, key=lambda span: _overlap(terms, passage[slice(*span)]), default=None)
    if best is None or _overlap(terms, passage[slice(*best)]) < LEAST_OVERLAP:
        return 0, len(passage)
    return best


def claim_before(answer: str, n: int, occurrence: int = 0) -> str:
    """Return the sentence of an answer that ends in its ``occurrence``-th (from 0) marker ``[[cN]]``."""
    markers = list(re.finditer(rf"\[\[c{n}\]\]", answer))
    if not markers:
        return ""
    marker = markers[occurrence] if occurrence < len(markers) else markers[0]
    before = re.sub(r"\[\[c\d+\]\]", "", answer[max(0, marker.start() - 600) : marker.start()]).rstrip()
    sentences = [found.group().strip() for found in STATEMENT.finditer(before) if found.group().strip()]
    return sentences[-1] if sentences else ""


def _paragraphs(passage: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for border in [*PARAGRAPH_BORDER.finditer(passage), None]:
        end = border.start() if border else len(passage)
        if passage[start:end].strip():
            spans.append((start, end))
        start = border.end() if border else end
    return spans


def _sentences(passage: str, start: int, end: int) -> list[tuple[int, int]]:
    return [(found.start(), found.end()) for found in SENTENCE.finditer(passage, start, end) if found.group().strip()]


def _terms(text: str) -> set[str]:
    """Words of Latin scripts and digits; pairs of neighbours in scripts written without spaces."""
    found = TERM.findall(text.lower())
    pairs = {a + b for a, b in pairwise(found) if not (a.isascii() or b.isascii())}
    return pairs | {term for term in found if term.isascii() and len(term) > 1}


def _overlap(claim: set[str], text: str) -> float:
    """Dice's coefficient of two sets of terms, from 0 to 1."""
    terms = _terms(text)
    return 2 * len(claim & terms) / (len(claim) + len(terms)) if claim and terms else 0.0
