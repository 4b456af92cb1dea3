"""XML that is no office format: feeds, articles (JATS), DocBook, FictionBook, whatever else; its text in order.

DOCTYPE and entities are cut away before parsing: nothing is expanded and nothing fetched.
"""

import html
import html.entities
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from lxml import etree

from apps.common.text import legible
from apps.knowledge.parsers.docx_styles import local
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.tables import cell_text, markdown_table

DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)")
DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")
DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]{0,1000}(?:\[[^\]]*\][^>]{0,100})?>", re.I)
DOCTYPE_WITHIN = 1 << 16  # characters; one further down is left to the parser, which expands nothing
ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);)([A-Za-z][\w.-]*);")
INLINE = frozenset(
    {
        "a", "b", "i", "u", "em", "strong", "emphasis", "italic", "bold", "sub", "sup", "span", "code", "xref",
        "ext-link", "link", "named-content", "sc", "strikethrough", "style", "phrase", "literal", "ulink", "term",
        "tt", "small", "big", "font", "underline", "monospace", "date", "year", "month", "day", "volume", "issue",
        "fpage", "lpage", "surname", "given-names", "first-name", "last-name", "middle-name", "prefix", "suffix",
        "string-name"
    }
)  # fmt: skip
TITLES = frozenset({"title", "article-title", "book-title", "headline"})
SECTIONS = frozenset({"sec", "section", "chapter", "body", "item", "entry", "channel", "part", "abstract", "appendix"})
SILENT = frozenset({"script", "style", "binary", "image", "stylesheet", "tex-math"})
MARKUP = re.compile(r"<(?:p|br|div|a|b|i|img|ul|ol|li|table|h\d|strong|em|span)\b[^>]{0,300}>", re.I)
DEEPEST = 400


def parse_xml_text(file: BinaryIO) -> Parsed:
    """Read an XML file. Raises ParseFailure: broken_file, empty_file."""
    data = file.read()
    declared = DECLARED.search(data[:400])
    text, encoding = decode(data, declared.group(1).decode("ascii") if declared else "")
    root = tree(text)
    blocks = [block for block in _blocks(root, 0, 0) if block.strip()]
    markdown = tidy(legible("\n\n".join(blocks))).strip()
    if not markdown:
        raise ParseFailure("empty_file")
    title = next((block.lstrip("# ") for block in blocks if block.startswith("#")), "")
    return Parsed(markdown, metadata={"encoding": encoding, **({"title": title[:300]} if title else {})})


def tree(text: str) -> Any:
    """Return the root of XML text, mended where it is not well-formed. Raises ParseFailure(broken_file)."""
    text = DECLARATION.sub("", text.lstrip("\ufeff"))
    if doctype := DOCTYPE.search(text, 0, DOCTYPE_WITHIN):
        text = text[: doctype.start()] + text[doctype.end() :]
    text = ENTITY.sub(
        lambda found: html.unescape(found.group(0)) if found.group(1) in html.entities.html5 else "", text
    )
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False, remove_comments=True,
        remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ParseFailure("broken_file", reason="XML") from error
    if root is None:
        raise ParseFailure("broken_file", reason="XML")
    return root


def _blocks(element: Any, depth: int, sections: int) -> Iterator[str]:
    """Yield blocks: an element with text of its own is a paragraph, one with elements alone holds blocks."""
    name = local(element)
    if depth > DEEPEST:
        raise ParseFailure("broken_file", reason="nested too deeply")
    if not name or name in SILENT:
        return
    if name == "table":
        yield _table(element)
        return
    if name in TITLES:
        yield f"{'#' * min(max(sections, 1), 6)} {_inline(element)}"
        return
    own = (element.text or "").strip() or any((one.tail or "").strip() for one in element)
    if own or all(local(one) in INLINE or not local(one) for one in element):
        text = _inline(element)
        yield _from_html(text) if MARKUP.search(text) else text
        return
    for one in element:
        yield from _blocks(one, depth + 1, sections + (name in SECTIONS))


def _inline(element: Any) -> str:
    """Return all text under an element on one line; nested blocks are kept apart by a space."""
    pieces: list[str] = []
    silent = 0
    for event, one in etree.iterwalk(element, events=("start", "end")):
        gone = local(one) in SILENT
        if local(one) not in INLINE:
            pieces.append(" ")
        if event == "start":
            silent += gone
            pieces.append("" if silent else one.text or "")
        else:
            silent -= gone
            pieces.append("" if silent or one is element else one.tail or "")
    return " ".join("".join(pieces).split())


def _table(element: Any) -> str:
    rows = [
        [cell_text(_inline(cell)).replace("\\|", "|") for cell in row if local(cell) in ("td", "th", "entry")]
        for row in element.iter()
        if local(row) in ("tr", "row")
    ]
    return markdown_table(rows) if rows else _inline(element)


def _from_html(text: str) -> str:
    from apps.knowledge.parsers.html import fragment_to_markdown

    return fragment_to_markdown(text.encode())
