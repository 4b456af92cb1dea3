"""PowerPoint (.pptx, .ppsx, .pptm): slide by slide, each a page: title, text, tables, charts, notes, comments.

Walks the XML by local names. Shapes come in the order of the file, which is that of their making;
groups are walked into, and no text is glued to its neighbour's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.docx_styles import child, local, number, value
from apps.knowledge.parsers.illustrations import illustrate, without_file_name
from apps.knowledge.parsers.links import linked, without_addresses
from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.properties import core_properties
from apps.knowledge.parsers.tables import markdown_table

TITLES = frozenset({"title", "ctrTitle"})
UNSAID = frozenset({"sldNum", "sldImg"})  # placeholders that say nothing about the matter
LONGEST_TITLE = 80
MOST_SLIDES = 3_000
DEEPEST_GROUP = 50


def parse_pptx(file: BinaryIO) -> Parsed:
    """Read a presentation.

    Raises:
        ParseFailure: password_required, broken_file, suspicious_file, empty_file.
    """
    package = Package(file)
    main = next(
        (path for kind, path in package.relations("").values() if kind == "officeDocument"), "ppt/presentation.xml"
    )
    root = package.xml(main)
    if root is None:
        raise ParseFailure("broken_file", reason="no presentation in it")
    relations = package.relations(main)
    slides = child(root, "sldIdLst")
    paths = [
        relations.get(_relation(slide), ("", ""))[1]
        for slide in (() if slides is None else slides)
        if isinstance(slide.tag, str)
    ]
    markdown, pages, said = "", [], False
    for at, path in enumerate(paths[:MOST_SLIDES], start=1):
        blocks = _Slide(package, path, at).blocks() if path else []
        said = said or bool(blocks)
        title = blocks.pop(0) if blocks and _is_title(blocks[0]) else f"## Slide {at}"
        text = tidy(legible("\n\n".join([title, *blocks])))
        separator = "\n\n" if markdown else ""
        pages.append((at, len(markdown) + len(separator)))
        markdown += separator + text
    if not said:
        raise ParseFailure("empty_file")
    return Parsed(markdown, pages, {"page_count": len(paths), **core_properties(package)})


def _is_title(block: str) -> bool:
    return block.startswith("## ") and "\n" not in block


def _may_be_title(block: str) -> bool:
    """Whether a slide's first block can stand for the title that it lacks."""
    short = len(block) <= LONGEST_TITLE and "\n" not in block
    return short and any(map(str.isalpha, block)) and not block.startswith(("|", "- ", "!["))


def _relation(element: Any) -> str:
    """Return an element's relation id, told from its own id by its namespace."""
    return next((found for key, found in element.attrib.items() if key.endswith("relationships}id")), "")


class _Slide:
    """One pass over one slide."""

    def __init__(self, package: Package, path: str, number: int) -> None:
        self.package, self.path, self.number = package, path, number
        self.relations, self.links = package.relations(path), package.links(path)
        self.title = ""
        self.found: list[str] = []

    def blocks(self) -> list[str]:
        """Return the slide's blocks, its title first as a heading."""
        root = self.package.xml(self.path)
        tree = None if root is None else child(root, "cSld", "spTree")
        if tree is not None:
            self.shapes(tree)
        if not self.title and self.found and _may_be_title(self.found[0]):
            self.title = without_addresses(self.found.pop(0))
        parts = [f"## {' '.join(self.title.split())}"] if self.title else []
        return [*parts, *self.found, *self.beside()]

    def shapes(self, parent: Any, depth: int = 0) -> None:
        """Collect the text of shapes, groups, tables and diagrams."""
        if depth > DEEPEST_GROUP:
            raise ParseFailure("broken_file", reason="nested too deeply")
        for element in parent:
            name = local(element)
            if name == "sp":
                self.shape(element)
            elif name in ("grpSp", "Choice"):
                self.shapes(element, depth + 1)
            elif name == "AlternateContent":
                branches = {local(one): one for one in reversed(element)}
                self.shapes(branches.get("Choice", branches.get("Fallback", ())), depth + 1)
            elif name == "graphicFrame":
                self.graphic(element)
            elif name == "pic":
                self.picture(element)

    def shape(self, element: Any) -> None:
        """Collect one shape: the title apart, several paragraphs of a placeholder as a list."""
        placeholder = child(element, "nvSpPr", "nvPr", "ph")
        kind = value(placeholder, "type") or "body" if placeholder is not None else ""
        body = child(element, "txBody")
        if body is None or kind in UNSAID or (kind == "dt" and any(local(one) == "fld" for one in body.iter())):
            return
        paragraphs = list(_paragraphs(body, self.links))
        if kind in TITLES and not self.title:
            self.title = without_addresses(" ".join(text for _, text in paragraphs))
        elif kind in ("body", "obj") and len(paragraphs) > 1:
            self.add("\n".join(f"{'  ' * level}- {' '.join(text.split())}" for level, text in paragraphs))
        else:
            self.add("\n\n".join(text for _, text in paragraphs))

    def graphic(self, element: Any) -> None:
        """Collect a table, a chart or a diagram."""
        data = child(element, "graphic", "graphicData")
        for one in () if data is None else data:
            if local(one) == "tbl":
                self.add(_table(one, self.links))
            elif local(one) == "chart":
                self.add(_chart(self.part(_relation(one))))
            elif local(one) == "relIds":
                self.add("\n\n".join(_texts(self.part(value(one, "dm")))))

    def picture(self, element: Any) -> None:
        """Collect a picture, or what is said of it."""
        words = without_file_name(value(child(element, "nvPicPr", "cNvPr"), "descr"))
        blip = child(element, "blipFill", "blip")
        kind, path = self.relations.get(value(blip, "embed"), ("", ""))
        data = self.package.picture(path) if kind == "image" else None
        self.add(illustrate(data, words, page=self.number))

    def part(self, relation: str) -> Any | None:
        """Return the root of the part that a relation leads to."""
        kind, path = self.relations.get(relation, ("", ""))
        return self.package.xml(path) if kind else None

    def beside(self) -> Iterator[str]:
        """Yield notes and comments, each marked as what it is."""
        for kind, path in sorted(self.relations.values()):
            root = self.package.xml(path) if kind in ("notesSlide", "comments") else None
            if root is None:
                continue
            if kind == "comments":
                texts = [text.strip() for text in root.itertext() if text.strip()]
            else:
                notes = _Slide(self.package, path, self.number)
                tree = child(root, "cSld", "spTree")
                if tree is not None:
                    notes.shapes(tree)
                texts = notes.found
            if texts:
                yield "> " + "\n> ".join(line for text in texts for line in text.split("\n") if line.strip())

    def add(self, text: str) -> None:
        """Collect a block that has text in it."""
        if text.strip():
            self.found.append(text.strip("\n"))


def _paragraphs(body: Any, links: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield (indentation level, text) of paragraphs with text."""
    for element in body:
        if local(element) != "p":
            continue
        properties = child(element, "pPr")
        text = "".join(_runs(element, links)).strip()
        if text:
            yield min(max(number(value(properties, "lvl")), 0), 8), text


def _runs(element: Any, links: Mapping[str, str] | None = None) -> Iterator[str]:
    for one in element:
        name = local(one)
        click = child(one, "rPr", "hlinkClick") if name == "r" else None
        if click is not None:
            yield linked("".join(_runs(one)), (links or {}).get(_relation(click)))
        elif name == "t":
            yield one.text or ""
        elif name == "br":
            yield "\n"
        elif name not in ("pPr", "rPr", "endParaRPr", ""):
            yield from _runs(one, links)


def _table(element: Any, links: Mapping[str, str]) -> str:
    """Return a table; a cell that spans others repeats its text."""
    rows: list[list[str]] = []
    for row in element:
        if local(row) != "tr":
            continue
        cells: list[str] = []
        for cell in (one for one in row if local(one) == "tc"):
            body = child(cell, "txBody")
            text = "" if body is None else " ".join(text for _, text in _paragraphs(body, links))
            if value(cell, "hMerge") in ("1", "true") and cells:
                text = cells[-1]
            elif value(cell, "vMerge") in ("1", "true") and rows and len(rows[-1]) > len(cells):
                text = rows[-1][len(cells)]
            cells.append(text)
        rows.append(cells)
    return markdown_table(rows)


def _chart(root: Any | None) -> str:
    """Return a chart's title and its numbers as a table: a row for each category, a column for each series."""
    if root is None:
        return ""
    series = [element for element in root.iter() if local(element) == "ser"]
    columns: list[list[str]] = []
    categories: list[str] = []
    for one in series:
        named, labels, numbers = child(one, "tx"), child(one, "cat"), child(one, "val")
        categories = categories or _values(labels)
        columns.append([" ".join(_values(named)), *_values(numbers)])
    height = max([len(categories), *(len(column) - 1 for column in columns)], default=0)
    rows = [["", *(column[0] for column in columns)]]
    for at in range(height):
        label = categories[at] if at < len(categories) else ""
        rows.append([label, *(column[at + 1] if at + 1 < len(column) else "" for column in columns)])
    return "\n\n".join(filter(None, [*_texts(child(root, "chart", "title")), markdown_table(rows)]))


def _values(element: Any | None) -> list[str]:
    return [] if element is None else [(one.text or "").strip() for one in element.iter() if local(one) == "v"]


def _texts(root: Any | None) -> list[str]:
    """Return the text of each drawing paragraph under an element."""
    if root is None:
        return []
    texts = ("".join(_runs(one)).strip() for one in root.iter() if local(one) == "p")
    return [text for text in texts if text]
