"""Printed lines put together again: which line goes on with the one before, and how the two are joined."""

import re

SENTENCE_END = ("。", ".", "！", "!", "？", "?", "：", ":", "；", ";", "”", "…")
BULLET = re.compile(r"\s*(?:[-•●▪◦‣·*–]\s|\(?\d{1,3}[.)、]\s?|[（(]?[一二三四五六七八九十]{1,3}[)）、])")
CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
# A chapter or section of Chinese rules and books on a line of its own: a number, then nothing or a title.
CHAPTER = re.compile(
    r"[ \t\u3000]*(第[一二三四五六七八九十百零〇\d]{1,7}(?:[章篇编編卷部]|(?P<part>[节節]))"
    r"(?:[ \t\u3000:：]+\S[^\n]{0,38})?)[ \t]*$",
    re.MULTILINE,
)
CONTENTS = re.compile(r"[.…·]{3}|\d$")  # an entry of a table of contents
HYPHENS = "\ufffe\x02\u00ad"  # what pdfium writes for a hyphen at a line's end


def chapter_level(match: re.Match[str]) -> int:
    """Return the level of heading that a match of CHAPTER is, 0 where it is a sentence or an entry of the contents."""
    text = match.group(1)
    return 0 if text.endswith(SENTENCE_END) or CONTENTS.search(text) else 2 if match.group("part") else 1


def joined(text: str, more: str) -> str:
    """Return a line and the one that goes on with it; a hyphen between them goes."""
    if text[-1] in HYPHENS:
        return text[:-1] + more
    glue = "" if CJK.match(text[-1]) and CJK.match(more[0]) else " "
    return text + glue + more
