"""OpenDocument texts and presentations (.odt, .odp): headings, lists, tables, notes, slides with their numbers."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.docx_styles import child, local, number, value
from apps.knowledge.parsers.illustrations import illustrate
from apps.knowledge.parsers.links import linked, without_addresses
from apps.knowledge.parsers.odf_locks import is_locked, unlocked
from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.properties import open_document_properties
from apps.knowledge.parsers.tables import markdown_table

GONE = frozenset(
    {"tracked-changes", "ruby-text", "note-citation", "forms", "sequence-decls", "page-thumbnail", "settings", "desc",
     "bookmark-ref", "page-number", "date-time", "sender-firstname"}
)  # fmt: skip
MOST_REPEATED = 200
DEEPEST = 300


def parse_odf(file: BinaryIO, *, password: str = "") -> Parsed:
    """Read a text or a presentation.

    Raises:
        ParseFailure: password_required, broken_file, suspicious_file, empty_file.
    """
    package = Package(file)
    if is_locked(package):
        package = Package(unlocked(package, password))
    root = package.xml("content.xml")
    body = None if root is None else child(root, "body")
    if body is None:
        raise ParseFailure("broken_file", reason="no content in it")
    reader = _Reader(package)
    reader.content(body)
    styles = package.xml("styles.xml")
    if styles is not None:
        reader.margins(styles)
    markdown, starts = "", []
    for block in reader.blocks:
        separator = "\n\n" if markdown else ""
        starts.append(len(markdown) + len(separator))
        markdown += separator + block
    if not markdown.strip():
        raise ParseFailure("empty_file")
    pages = [(page, starts[at]) for page, at in reader.pages if at < len(starts)]
    return Parsed(markdown, pages, dict(open_document_properties(package)))


class _Reader:
    """One pass over one document."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.blocks: list[str] = []
        self.pages: list[tuple[int, int]] = []  # (slide, block index)

    def add(self, text: str) -> None:
        """Append a block that has text in it."""
        text = tidy(legible(text))
        if text.strip():
            self.blocks.append(text)

    def content(self, parent: Any, depth: int = 0) -> None:
        """Append the blocks under an element."""
        if depth > DEEPEST:
            raise ParseFailure("broken_file", reason="nested too deeply")
        for element in parent:
            name = local(element)
            if name == "h":
                level = min(max(number(value(element, "outline-level"), 1), 1), 6)
                text = without_addresses(" ".join(self.line(element, depth).split()))
                self.add(f"{'#' * level} {text}" if text else "")
            elif name == "p":
                self.add(self.line(element, depth).strip())
            elif name == "list":
                self.add("\n".join(self.items(element, 0)))
            elif name == "table":
                self.add(self.table(element))
            elif name == "page":
                self.pages.append((len(self.pages) + 1, len(self.blocks)))
                self.slide(element)
            elif name == "image":
                self.add(self.picture(element))
            elif name == "annotation":
                self.add(f"> {self.line(element, depth)}")
            elif name and name not in GONE:
                self.content(element, depth + 1)

    def slide(self, element: Any) -> None:
        """Append one slide: its title as a heading, its notes marked."""
        titles = [one for one in element if value(one, "class") == "title"]
        text = " ".join(self.line(titles[0], 0).split()) if titles else ""
        self.add(f"## {text}" if text else f"## Slide {len(self.pages)}")
        for one in element:
            if local(one) == "notes":
                notes = _Reader(self.package)
                notes.content(one)
                self.add("\n".join(f"> {line}" for block in notes.blocks for line in block.split("\n") if line))
            elif one not in titles[:1]:
                self.content([one])

    def items(self, element: Any, level: int) -> Iterator[str]:
        """Yield a list's lines."""
        for item in element:
            if local(item) not in ("list-item", "list-header"):
                continue
            for one in item:
                if local(one) == "list" and level < DEEPEST:
                    yield from self.items(one, level + 1)
                elif local(one) in ("p", "h"):
                    text = " ".join(self.line(one, 0).split())
                    if text:
                        yield f"{'  ' * min(level, 8)}- {text}"

    def table(self, element: Any) -> str:
        """Return a table; a cell that spans columns repeats its text, one that is covered takes it over."""
        rows: list[list[str]] = []
        for row in (one for one in element.iter() if local(one) == "table-row"):
            cells: list[str] = []
            for cell in row:
                if local(cell) not in ("table-cell", "covered-table-cell"):
                    continue
                inside = _Reader(self.package)
                inside.content(cell)
                text = " ".join(inside.blocks)
                if local(cell) == "covered-table-cell" and not text:
                    across = cells[-1:] if cells else []
                    text = across[0] if across else rows[-1][0] if rows and rows[-1] else ""
                cells.extend([text] * min(max(number(value(cell, "number-columns-repeated"), 1), 1), MOST_REPEATED))
            while cells and not cells[-1]:
                cells.pop()
            rows.append(cells)
        return markdown_table(rows)

    def line(self, parent: Any, depth: int) -> str:
        """Return the text of a paragraph; boxes and notes inside stand where they are anchored."""
        pieces = [parent.text or ""]
        if depth > DEEPEST:
            raise ParseFailure("broken_file", reason="nested too deeply")
        for element in parent:
            name = local(element)
            if name == "s":
                pieces.append(" " * min(max(number(value(element, "c"), 1), 1), 100))
            elif name in ("tab", "line-break"):
                pieces.append("\t" if name == "tab" else "\n")
            elif name == "note":
                body = child(element, "note-body")
                pieces.append("" if body is None else f" ({' '.join(self.line(body, depth + 1).split())})")
            elif name == "image":
                pieces.append(self.picture(element))
            elif name == "a":
                pieces.append(linked(self.line(element, depth + 1), value(element, "href")))
            elif name in ("p", "h", "text-box", "list", "list-item"):
                pieces.append(f" {self.line(element, depth + 1)} ")
            elif name and name not in GONE:
                pieces.append(self.line(element, depth + 1))
            pieces.append(element.tail or "" if not isinstance(element.tag, str) or name else "")
        return "".join(pieces)

    def picture(self, element: Any) -> str:
        """Return the reference to a picture, or what is said of it."""
        frame = element.getparent()
        said = next((one for one in frame if local(one) == "desc"), None) if frame is not None else None
        words = "" if said is None else said.text or ""
        page = self.pages[-1][0] if self.pages else None
        return illustrate(self.package.picture(value(element, "href")), words, page=page)

    def margins(self, styles: Any) -> None:
        """Append the text of headers and footers, each once."""
        seen = set(self.blocks)
        for element in styles.iter():
            wanted = local(element) in ("header", "footer", "header-left", "footer-left")
            if wanted or value(element, "class") in ("header", "footer"):
                inside = _Reader(self.package)
                inside.content(element)
                fresh = [block for block in inside.blocks if block not in seen]
                self.blocks.extend(fresh)
                seen.update(fresh)
