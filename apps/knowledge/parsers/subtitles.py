"""Subtitles (.srt, .vtt): what is said, one paragraph a speaker, without times and cue numbers."""

import html
import re
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.parsed import Parsed, ParseFailure

TIME = re.compile(r"(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}\s*-->\s*(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}")
VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]{1,200})>")
MARKUP = re.compile(r"</?[a-z][^<>]{0,200}>|<\d[\d:.]{0,20}>|\{\\[^{}]{0,100}\}", re.I)
LONGEST_PARAGRAPH = 600
SENTENCE_END = (".", "!", "?", "。", "！", "？", "…")


def parse_subtitles(file: BinaryIO) -> Parsed:
    """Read subtitles. Raises ParseFailure(empty_file) where nothing is said."""
    text, encoding = decode(file.read())
    text = legible(text.replace("\r\n", "\n").replace("\r", "\n"))
    paragraphs: list[tuple[str, str]] = []  # (speaker, words)
    for cue in re.split(r"\n[ \t]*\n", text):
        lines = cue.strip("\n").split("\n")
        times = next((at for at, line in enumerate(lines[:2]) if TIME.match(line.strip())), None)
        if times is None:
            continue  # the file's head, notes, styles
        speaker, words = "", " ".join(lines[times + 1 :])
        if voice := VOICE.search(words):
            speaker = " ".join(voice.group(1).split())
        words = " ".join(html.unescape(MARKUP.sub("", words)).split())
        _append(paragraphs, speaker, words)
    if not paragraphs:
        raise ParseFailure("empty_file")
    blocks = [f"{speaker}: {words}" if speaker else words for speaker, words in paragraphs]
    return Parsed("\n\n".join(blocks), metadata={"encoding": encoding})


def _append(paragraphs: list[tuple[str, str]], speaker: str, words: str) -> None:
    """Add what is said to the paragraph before, unless somebody else speaks or that one is long enough."""
    if not words:
        return
    if paragraphs and paragraphs[-1][0] == speaker:
        before = paragraphs[-1][1]
        if before == words or before.endswith(f" {words}"):
            return  # rolling subtitles say every line twice
        unfinished = len(before) < 2 * LONGEST_PARAGRAPH and not before.endswith(SENTENCE_END)
        if len(before) < LONGEST_PARAGRAPH or unfinished:
            paragraphs[-1] = (speaker, f"{before} {words}")
            return
    paragraphs.append((speaker, words))
