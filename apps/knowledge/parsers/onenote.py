"""OneNote sections (.one), as well as it goes: runs of text in the file, without their place on the page."""

import re
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

RUN = re.compile(rb"(?:[\x09\x20-\x7e]\x00|[\x00-\xff][\x4e-\x9f]|[\x00-\xff][\x30\xff\xac-\xd7]){3,}")
NAMES = re.compile(
    r"Calibri|Arial|Times New Roman|Segoe UI|Microsoft YaHei|SimSun|PageTitle|PageDateTime|\{[0-9A-F-]{36}\}"
)


def parse_onenote(file: BinaryIO) -> Parsed:
    """Read what text a section holds. Raises ParseFailure(empty_file)."""
    seen: dict[str, None] = {}
    for match in RUN.finditer(file.read()):
        text = " ".join(legible(match.group().decode("utf-16-le", "replace")).split())
        if _is_said(text):
            seen[text] = None
    if not seen:
        raise ParseFailure("empty_file")
    return Parsed(tidy("\n\n".join(seen)), metadata={"best_effort": True})


def _is_said(text: str) -> bool:
    """Whether a run is something that a person wrote: usual characters, and not the name of a font or a part."""
    if len(text) < 2 or NAMES.search(text):
        return False
    if text.isascii():
        return len(text) >= 4 and sum(map(str.isalnum, text)) * 2 > len(text)
    letters = [letter for letter in text if letter > "\u2fff"]
    usual = sum(map(_is_usual, letters))
    return len(set(letters)) >= 3 and usual >= len(letters) * 0.8


def _is_usual(letter: str) -> bool:
    """Whether a character is kana, punctuation, or among the usual ones of Chinese, Japanese or Korean."""
    if "\u3000" <= letter <= "\u30ff" or "\uff01" <= letter <= "\uff5e":
        return True
    for encoding, last in (("gb2312", 0xD7), ("euc_jp", 0xCF), ("euc_kr", 0xC8)):
        try:
            if 0xB0 <= letter.encode(encoding)[0] <= last:
                return True
        except UnicodeEncodeError:
            continue
    return False
