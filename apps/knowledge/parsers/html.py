"""HTML: decoded as it declares itself, cleaned of what is not its text, then Markdown in document order."""

import base64
import binascii
import io
import re
from collections.abc import Callable
from typing import Any, BinaryIO
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Comment, Tag
from bs4.builder import ParserRejectedMarkup
from bs4.element import NavigableString
from markdownify import MarkdownConverter

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.illustrations import illustrate, wanted
from apps.knowledge.parsers.links import linked
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.properties import facts
from apps.knowledge.parsers.tables import markdown_table

DECLARED = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)", re.I)
DROPPED = (
    *("script", "style", "noscript", "template", "svg", "canvas", "nav", "object", "embed", "link", "meta"),
    *("button", "select", "input", "dialog", "audio", "video", "map"),
)
NOT_CONTENT = frozenset({"navigation", "search", "banner", "contentinfo", "menu", "menubar", "toolbar"})
HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
LARGEST_SPAN = 100
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
PROPERTIES = {
    "author": "author",
    "article:author": "author",
    "date": "created",
    "dc.date": "created",
    "article:published_time": "created",
    "article:modified_time": "modified",
}
Find = Callable[[str], bytes | None]


class _Converter(MarkdownConverter):
    """Tables by our own rule, so that merged cells repeat their text and every row stands alone."""

    def __init__(self, find: Find, base: str, **options: Any) -> None:
        super().__init__(**options)
        self.find, self.base = find, base

    def convert_table(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        caption = el.find("caption")
        above = f"{caption.get_text(' ', strip=True)}\n\n" if caption else ""
        return f"\n\n{above}{markdown_table(_grid(el))}\n\n"

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        address = str(el.get("href") or "").strip()
        if address.startswith("#") or not HEADINGS.isdisjoint(parent_tags):
            return text
        try:
            return linked(text, urljoin(self.base, address))
        except ValueError:  # an address that is none
            return text

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        source = str(el.get("src") or "")
        data = (_inline(source) or self.find(source)) if wanted() else None
        return illustrate(data, str(el.get("alt") or ""))


def parse_html(file: BinaryIO, *, find: Find = lambda source: None) -> Parsed:
    """Read an HTML page. Raises ParseFailure(empty_file) where nothing is left of it.

    ``find`` returns the picture behind an address where it is at hand; nothing is ever fetched.
    """
    markup, encoding = _decoded(file.read())
    try:
        soup = BeautifulSoup(markup, "lxml")
    except ParserRejectedMarkup as error:
        raise ParseFailure("broken_file") from error
    title = " ".join(soup.title.get_text().split())[:300] if soup.title else ""
    said = _properties(soup, title)
    base = _address(soup)
    _clean(soup)
    content = _main(soup)
    converter = _Converter(
        find,
        base,
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    markdown = tidy(legible(str(converter.convert_soup(content)))).strip()
    if title and not content.find("h1"):
        markdown = f"# {title}\n\n{markdown}".strip()
    if not markdown:
        raise ParseFailure("empty_file")
    return Parsed(markdown, metadata={"encoding": encoding, **said})


def _properties(soup: BeautifulSoup, title: str) -> dict[str, str]:
    """Return what a page says of itself in its head."""
    found: list[tuple[str, str | None]] = [("title", title)]
    if isinstance(soup.html, Tag):
        found.append(("language", str(soup.html.get("lang") or "")))
    for one in soup.find_all("meta"):
        name = str(one.get("name") or one.get("property") or "").lower()
        if name in PROPERTIES:
            found.append((PROPERTIES[name], str(one.get("content") or "")))
    return facts(found)


def _address(soup: BeautifulSoup) -> str:
    """Return the address from which the page's own links go on, as far as it says so."""
    found = soup.base or soup.find("link", rel="canonical")
    return str(found.get("href") or "") if isinstance(found, Tag) else ""


def fragment_to_markdown(data: bytes, find: Find = lambda source: None) -> str:
    """Return the Markdown of an HTML part inside another format, "" where it has none."""
    try:
        return parse_html(io.BytesIO(data), find=find).markdown
    except ParseFailure:
        return ""


def _inline(source: str) -> bytes | None:
    """Return a picture that is written out in its address."""
    head, comma, data = source.partition(",")
    if not comma or not head.lower().startswith("data:image/") or not head.lower().endswith(";base64"):
        return None
    try:
        return base64.b64decode(data)
    except (binascii.Error, ValueError):
        return None


def _decoded(data: bytes) -> tuple[str, str]:
    match = DECLARED.search(data[:4096])
    declared = (match.group(1) or match.group(2)).decode("ascii", "replace") if match else ""
    text, encoding = decode(data, declared)
    return re.sub(r"\A\s*<\?xml[^>]*>", "", text), encoding


def _clean(soup: BeautifulSoup) -> None:
    for frame in soup.find_all("iframe"):  # a page inside the page is text; its address is never fetched
        inner = frame.get("srcdoc")
        frame.replace_with(BeautifulSoup(str(inner), "lxml") if inner else "")
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for tag in soup.find_all(list(DROPPED)):
        tag.decompose()
    for tag in soup.find_all(_is_hidden):
        if not tag.decomposed:
            tag.decompose()


def _is_hidden(tag: Tag) -> bool:
    if tag.name in ("html", "body", "main", "article"):
        return False
    return (
        tag.has_attr("hidden")
        or str(tag.get("role", "")).lower() in NOT_CONTENT
        or HIDDEN.search(str(tag.get("style", ""))) is not None
    )


def _main(soup: BeautifulSoup) -> Tag:
    """Return the element that holds the page's own text: what is marked as such, unless most text is elsewhere."""
    body = soup.body or soup
    marked = soup.find_all("main") or soup.find_all(role="main") or soup.find_all("article")
    if len(marked) == 1 and isinstance(marked[0], Tag):
        inside, all_text = len(marked[0].get_text(strip=True)), len(body.get_text(strip=True))
        if inside >= 200 or inside * 2 >= all_text:
            return marked[0]
    return body


def _grid(table: Tag) -> list[list[str]]:
    """Return a table's cells with spans written out; the text of tables inside is part of their cell."""
    rows: list[list[str]] = []
    below: dict[int, tuple[str, int]] = {}  # column -> text of a cell that reaches down, rows left
    for tr in table.find_all("tr"):
        if tr.find_parent("table") is not table:
            continue
        row: list[str] = []
        for cell in tr.find_all(["td", "th"], recursive=False):
            _fill(row, below)
            text = _cell(cell)
            wide, tall = _span(cell, "colspan"), _span(cell, "rowspan")
            for _ in range(wide):
                if tall > 1:
                    below[len(row)] = (text, tall - 1)
                row.append(text)
        _fill(row, below)
        rows.append(row)
    return rows


def _fill(row: list[str], below: dict[int, tuple[str, int]]) -> None:
    while len(row) in below:
        text, left = below.pop(len(row))
        if left > 1:
            below[len(row)] = (text, left - 1)
        row.append(text)


def _cell(cell: Tag) -> str:
    pieces = [str(piece) for piece in cell.descendants if isinstance(piece, NavigableString)]
    return " ".join(" ".join(pieces).split()) if cell.find(["p", "div", "br", "table", "li"]) else cell.get_text()


def _span(cell: Tag, name: str) -> int:
    try:
        return min(max(int(str(cell.get(name, "1"))), 1), LARGEST_SPAN)
    except ValueError:
        return 1
