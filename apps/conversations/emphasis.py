"""Emphasis that borders on Chinese, Japanese or Korean text.

CommonMark looks for spaces about the stars: ``**注意：**请`` would stay as it is written, since the
closing stars stand behind punctuation and before a letter. Beside such text punctuation counts as a
letter, as the CommonMark discussion of this fault proposes (commonmark-spec#650).
"""

import re

from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter, Scanned

EAST_ASIAN = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef“”‘’—…]")


def scan(state: StateInline, start: int, *, may_split_word: bool) -> Scanned:
    """Do what ``StateInline.scanDelims`` does, with East Asian neighbours in mind."""
    found = state.scanDelims(start, may_split_word)
    end = start + found.length
    before = state.src[start - 1] if start else " "
    after = state.src[end] if end < state.posMax else " "
    if not may_split_word or not (EAST_ASIAN.match(before) or EAST_ASIAN.match(after)):
        return found
    opens, closes = not _is_space(after), not _is_space(before)
    if opens and closes:  # between two characters: punctuation leans outwards
        opens = not (_is_mark(after) and not _is_mark(before) and not EAST_ASIAN.match(before))
        closes = not (_is_mark(before) and not _is_mark(after) and not EAST_ASIAN.match(after))
    return Scanned(opens or found.can_open, closes or found.can_close, found.length)


def _is_space(character: str) -> bool:
    return isWhiteSpace(ord(character)) or character == "\n"


def _is_mark(character: str) -> bool:
    return isMdAsciiPunct(ord(character)) or isPunctChar(character)


def tokenize(state: StateInline, silent: bool) -> bool:
    """Take a run of stars or underscores; in place of the parser's own rule "emphasis"."""
    marker = state.src[state.pos]
    if silent or marker not in "_*":
        return False
    found = scan(state, state.pos, may_split_word=marker == "*")
    for _ in range(found.length):
        token = state.push("text", "", 0)
        token.content = marker
        state.delimiters.append(
            Delimiter(
                marker=ord(marker),
                length=found.length,
                token=len(state.tokens) - 1,
                end=-1,
                open=found.can_open,
                close=found.can_close,
            )
        )
    state.pos += found.length
    return True
