"""The Markdown that answers may use: CommonMark with tables, strikethrough and formulas, and no more.

Raw HTML stays text. Reference links are off, since a definition further down would change blocks
that were already shown. Images become links: an answer must not make the reader's browser fetch
from other sites.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from apps.conversations import code, emphasis
from apps.conversations.mathematics import mathematics

ALIGNMENT = {"text-align:right": "n", "text-align:center": "center"}
# A run of markers with the word before it (of Chinese one character) and the stop behind it.
LATIN = r"(?:[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u3040-\u30ff]|[’'%-]){1,30}"
MARKERS = re.compile(rf"({LATIN}|[^\s\[\]])?((?:\s{{0,3}}\[\[c\d{{1,6}}\]\])+)([.,;:!?。，；：！？、)）”’]*)")
NUMBER = re.compile(r"\[\[c(\d+)\]\]")
LINE_END = re.compile(r"\r\n?|\n")

Link = Callable[[int], str]


def _alignment(state: StateCore) -> None:
    """Say a table cell's alignment by class: the pages' policy allows no style attribute."""
    for token in state.tokens:
        if token.type in {"td_open", "th_open"} and "style" in token.attrs:
            name = ALIGNMENT.get(str(token.attrs.pop("style")))
            if name:
                token.attrs["class"] = name


def _citations(state: StateCore) -> None:
    """Turn ``[[cN]]`` outside code into what ``env["link"]`` returns; drop what it does not know."""
    link = state.env.get("link")
    if link is None:
        return
    for token in state.tokens:
        if token.type == "inline" and "[[c" in token.content:
            token.children = [new for child in token.children or () for new in _linked(child, link)]


def _linked(token: Token, link: Link) -> Iterator[Token]:
    if token.type != "text" or "[[c" not in token.content:
        yield token
        return
    place = 0
    for match in MARKERS.finditer(token.content):
        yield _piece("text", token.content[place : match.start()], token.level)
        word, stop = match[1] or "", match[3]
        links = "".join(link(int(number)) for number in NUMBER.findall(match[2]))
        if links:
            wrapped = f'<span class="nowrap">{escape(word)}{links}{escape(stop)}</span>'
            yield _piece("html_inline", wrapped, token.level)
        else:
            yield _piece("text", word + stop, token.level)
        place = match.end()
    yield _piece("text", token.content[place:], token.level)


def _piece(kind: str, content: str, level: int) -> Token:
    return Token(kind, "", 0, content=content, level=level)


def _open_table(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    """Give a table a box in which it scrolls where it is wider than its reader's page."""
    return f'<div class="wide-box">{renderer.renderToken(tokens, index, options, env)}'


def _close_table(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    return f"{renderer.renderToken(tokens, index, options, env).rstrip()}</div>\n"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "highlight": code.highlight})
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "image", "html_block", "html_inline"])
    parser.inline.ruler.at("emphasis", emphasis.tokenize)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    mathematics(parser)
    parser.core.ruler.push("alignment", _alignment)
    parser.core.ruler.push("citations", _citations)
    return parser


_PARSER = _parser()


def to_html(text: str, *, link: Link | None = None) -> str:
    """Return Markdown as HTML, still to be sanitised. ``link`` makes the HTML of one marker."""
    env: dict[str, Any] = {} if link is None else {"link": link}
    return str(_PARSER.render(text, env))


def block_starts(text: str) -> list[int]:
    """Return where each top-level block begins, in characters. Inline content is not parsed."""
    lines = [0, *(match.end() for match in LINE_END.finditer(text))]
    tokens: list[Token] = []
    _PARSER.block.parse(LINE_END.sub("\n", text), _PARSER, {}, tokens)
    return [lines[token.map[0]] for token in tokens if token.level == 0 and token.map]
