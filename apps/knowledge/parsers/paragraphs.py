"""Printed lines put together again: which line goes on with the one before, and how the two are joined."""

import re

SENTENCE_END = ("。", ".", "！", "!", "？", "?", "：", ":", "；", ";", "”", "…")
BULLET = re.compile(r"\s*(?:[-•●▪◦‣·*–]\s|\(?\d{1,3}[.)、]\s?|[（(]?[一二三四五六七八九十]{1,3}[)）、])")
CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
HYPHENS = "\ufffe\x02\u00ad"  # what pdfium writes for a hyphen at a line's end


def joined(text: str, more: str) -> str:
    """Return a line and the one that goes on with it; a hyphen between them goes."""
    if text[-1] in HYPHENS:
        return text[:-1] + more
    glue = "" if CJK.match(text[-1]) and CJK.match(more[0]) else " "
    return text + glue + more
