"""Word (.docx, .docm): everything a reader of the document sees, in its order, once.

Walks the XML by local names, so that strict and transitional files, and those of other programs,
are the same: text boxes, content controls, links, tracked insertions, notes, comments, headers.
Deletions are left out. Pages are those of Word's last layout, where the file remembers it.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.docx_styles import Numbering, Styles, child, local, number, value
from apps.knowledge.parsers.illustrations import illustrate, without_file_name
from apps.knowledge.parsers.links import linked, without_addresses
from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import Parsed, ParseFailure
from apps.knowledge.parsers.properties import core_properties
from apps.knowledge.parsers.tables import markdown_table

GONE = frozenset({"del", "moveFrom", "instrText", "delText", "rt", "pPr", "rPr", "sectPr", "proofErr", "fldData"})
BREAKS = frozenset({"br", "cr"})
NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
LONGEST_HEADING = 40  # of one that is known by its number alone
ZH_NUMBERED = (
    (re.compile(r"第[一二三四五六七八九十百\d]+[章篇部]"), 1),
    (re.compile(r"第[一二三四五六七八九十百\d]+[节節条條]"), 2),
    (re.compile(r"[一二三四五六七八九十]{1,3}[、.．]"), 2),
    (re.compile(r"[（(][一二三四五六七八九十]{1,3}[)）]"), 3),
)
DECIMAL_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){1,3})[ \t.、．]?\s*(?=[^\d\s.])")
SENTENCE_END = ("。", "；", "，", "：", "！", "？", ".", ";", ",", ":", "!", "?")


def parse_docx(file: BinaryIO) -> Parsed:
    """Read a Word file.

    Raises:
        ParseFailure: password_required, broken_file, suspicious_file, empty_file.
    """
    package = Package(file)
    main = next(
        (path for kind, path in package.relations("").values() if kind == "officeDocument"), "word/document.xml"
    )
    root = package.xml(main)
    body = None if root is None else child(root, "body")
    if body is None:
        raise ParseFailure("broken_file", reason="no document in it")
    return _Reader(package, main).read(body)


class _Reader:
    """One pass over one document."""

    def __init__(self, package: Package, main: str) -> None:
        self.package, self.main = package, main
        self.relations, self.links = package.relations(main), package.links(main)
        parts = dict(self.relations.values())
        self.styles = Styles(package.xml(parts["styles"]) if "styles" in parts else None)
        self.numbering = Numbering(package.xml(parts["numbering"]) if "numbering" in parts else None)
        self.notes: list[tuple[str, str]] = []  # (part, id) in the order of their references
        self.blocks: list[str] = []
        self.marks: list[tuple[int, int]] = []  # (page, block index)
        self.page = 1
        self.turned = False  # a page has begun since the last block
        self.numbered: list[tuple[int, int]] = []  # (block index, level) of what may be a heading
        self.items: set[int] = set()  # blocks that are list items
        self.styled = False
        self.words = ""  # about the picture that comes next
        self.inside = True  # the body, whose relations we know; headers and notes have others

    def read(self, body: Any) -> Parsed:
        """Return the document."""
        self.content(body)
        if not self.styled and self.numbered:
            if self.numbered[0][0] > 0 and _may_be_heading(self.blocks[0]):
                self.blocks[0] = f"# {self.blocks[0]}"
            for index, level in self.numbered:
                self.blocks[index] = f"{'#' * level} {self.blocks[index].strip()}"
                self.items.discard(index)
        self.appendix()
        markdown, starts = "", []
        for index, block in enumerate(self.blocks):
            tight = index and {index - 1, index} <= self.items
            markdown += ("\n" if tight else "\n\n") * bool(index)
            starts.append(len(markdown))
            markdown += block
        if not markdown.strip():
            raise ParseFailure("empty_file")
        pages = [(1, 0), *((page, starts[at]) for page, at in self.marks if at < len(starts))] if self.marks else []
        return Parsed(markdown, pages, dict(core_properties(self.package)))

    # blocks

    def content(self, parent: Any) -> None:
        """Append the blocks of a body, cell, note or text box."""
        for element in parent:
            name = local(element)
            if name == "p":
                self.paragraph(element)
            elif name == "tbl":
                self.add(self.table(element))
            elif name == "altChunk":
                self.alternative(element)
            elif name == "AlternateContent":
                self.content(_chosen(element))
            elif name and name not in GONE:
                self.content(element)  # content controls, insertions, custom XML

    def add(self, text: str) -> int:
        """Append a block, and the page it begins if one has turned; return its index, -1 for no text."""
        text = legible(text).strip("\n").rstrip()
        if not text.strip():
            return -1
        if self.turned:
            self.marks.append((self.page, len(self.blocks)))
            self.turned = False
        self.blocks.append(text)
        return len(self.blocks) - 1

    def paragraph(self, element: Any) -> None:
        """Append a paragraph, then the text boxes that hang on it."""
        boxes: list[Any] = []
        text = "".join(self.inline(element, boxes)).strip()
        properties = child(element, "pPr")
        style = value(child(properties, "pStyle")) if properties is not None else ""
        outline = child(properties, "outlineLvl") if properties is not None else None
        level = number(value(outline), 9) + 1 if outline is not None else self.styles.level(style)
        label, depth = self.label(properties, style)
        if text and 1 <= level <= 6:
            self.styled = True
            text = without_addresses(text)
            self.add(f"{'#' * level} {_one_line(f'{label} {text}' if label not in ('', '-') else text)}")
        elif text and label:
            index = self.add(f"{'  ' * depth}{label} {text}")
            self.items.add(index)
            guess = _numbered_level(f"{label}{text}") if label != "-" else 0
            if guess and index >= 0:
                self.numbered.append((index, guess))
        elif text:
            index = self.add(text)
            guess = _numbered_level(text)
            if guess and index >= 0:
                self.numbered.append((index, guess))
        for box in boxes:
            self.content(box)

    def label(self, properties: Any | None, style: str) -> tuple[str, int]:
        """Return a paragraph's list label and depth, ("", 0) outside a list."""
        given = child(properties, "numPr") if properties is not None else None
        key, level = self.styles.numbering(style)
        if given is not None:
            key = value(child(given, "numId")) or key
            level = number(value(child(given, "ilvl")), level)
        if not key or key == "0":
            return "", 0
        level = min(max(level, 0), 8)
        return self.numbering.label(key, level), level

    def table(self, element: Any) -> str:
        """Return a table as Markdown; a cell that spans rows or columns repeats its text."""
        rows: list[list[str]] = []
        above: dict[int, str] = {}
        for row in _descend(element, "tr"):
            cells: list[str] = []
            for cell in _descend(row, "tc"):
                properties = child(cell, "tcPr")
                wide = number(value(child(properties, "gridSpan")), 1) if properties is not None else 1
                merged = child(properties, "vMerge") if properties is not None else None
                going_on = merged is not None and value(merged) != "restart"
                text = above.get(len(cells), "") if going_on else self.cell(cell)
                for _ in range(min(max(wide, 1), 100)):
                    if merged is not None:
                        above[len(cells)] = text
                    cells.append(text)
            rows.append(cells)
        return markdown_table(rows)

    def cell(self, element: Any) -> str:
        """Return a cell's text on one line, the tables inside it too."""
        kept = self.blocks, self.marks, self.numbered, self.items
        self.blocks, self.marks, self.numbered, self.items = [], [], [], set()
        self.content(element)
        inside, turned = self.blocks, self.turned or bool(self.marks)
        self.blocks, self.marks, self.numbered, self.items = kept
        self.turned = turned
        return " ".join(re.sub(r"^#+ |^\|[ |:-]+\|$", "", block, flags=re.M).replace("\\|", "|") for block in inside)

    def alternative(self, element: Any) -> None:
        """Append an HTML or plain text part that stands in for content."""
        kind, path = self.relations.get(value(element, "id"), ("", ""))
        data = self.package.read(path) if kind else None
        if not data:
            return
        if b"<" in data[:1024]:
            from apps.knowledge.parsers.html import fragment_to_markdown

            self.add(fragment_to_markdown(data))
        else:
            from apps.knowledge.parsers.encodings import decode

            self.add(decode(data)[0])

    # runs

    def inline(self, parent: Any, boxes: list[Any]) -> Iterator[str]:
        """Yield the text inside a paragraph; collect the text boxes met on the way."""
        for element in parent:
            name = local(element)
            if name == "t":
                yield element.text or ""
            elif name == "tab":
                yield "\t"
            elif name == "noBreakHyphen":
                yield "-"
            elif name in BREAKS:
                yield "\n"
            elif name == "lastRenderedPageBreak":
                self.page += 1
                self.turned = True
            elif name in NOTES:
                self.notes.append((NOTES[name], value(element, "id")))
                yield f"[^{len(self.notes)}]"
            elif name == "txbxContent":
                boxes.append(element)
            elif name == "hyperlink":
                words = "".join(self.inline(element, boxes))
                yield linked(words, self.links.get(value(element, "id"))) if self.inside else words
            elif name == "docPr":
                self.words = value(element, "descr")
            elif name in ("blip", "imagedata"):
                yield self.picture(element)
            elif name == "AlternateContent":
                yield from self.inline(_chosen(element), boxes)
            elif name and name not in GONE:
                yield from self.inline(element, boxes)

    def picture(self, element: Any) -> str:
        """Return the reference to a picture, what is said of it where it is not kept."""
        words, self.words = self.words, ""
        kind, path = self.relations.get(value(element, "embed") or value(element, "id"), ("", ""))
        data = self.package.picture(path) if kind == "image" and self.inside else None
        return illustrate(data, without_file_name(words))

    # what stands outside the body

    def appendix(self) -> None:
        """Append notes, comments, and the text of headers and footers, each once."""
        self.turned = self.inside = False
        done = 0
        while done < len(self.notes):  # a note may refer to another
            part, key = self.notes[done]
            done += 1
            self.quoted(part, key, f"[^{done}]: ")
        for _, path in sorted(self.relations.values()):
            if path.endswith("comments.xml") and (root := self.package.xml(path)) is not None:
                for comment in root:
                    self.quoted_element(comment, "> ")
        seen = set(self.blocks)
        for kind, path in sorted(self.relations.values()):
            if kind in ("header", "footer") and (root := self.package.xml(path)) is not None:
                kept = len(self.blocks)
                self.content(root)
                fresh = [block for block in self.blocks[kept:] if block not in seen]
                self.blocks[kept:] = fresh
                seen.update(fresh)

    def quoted(self, part: str, key: str, mark: str) -> None:
        """Append one foot- or endnote."""
        path = next((path for kind, path in self.relations.values() if kind == part), "")
        root = self.package.xml(path) if path else None
        for note in () if root is None else root:
            if value(note, "id") == key:
                self.quoted_element(note, mark)

    def quoted_element(self, element: Any, mark: str) -> None:
        """Append an element's blocks as one, behind a mark."""
        kept = len(self.blocks)
        self.content(element)
        inside, self.blocks = self.blocks[kept:], self.blocks[:kept]
        if inside:
            self.add(mark + "\n".join(inside))


def _chosen(alternate: Any) -> Any:
    """Return one branch of alternate content, never both."""
    branches = {local(one): one for one in reversed(alternate)}  # the first Choice wins
    return branches.get("Choice", branches.get("Fallback", ()))


def _descend(element: Any, wanted: str) -> Iterator[Any]:
    """Yield rows of a table or cells of a row, through content controls and insertions."""
    for one in element:
        name = local(one)
        if name == wanted:
            yield one
        elif name in ("sdt", "sdtContent", "ins", "customXml", "moveTo"):
            yield from _descend(one, wanted)


def _numbered_level(text: str) -> int:
    """Return the heading level that a short paragraph's number suggests, 0 for none."""
    if not _may_be_heading(text):
        return 0
    for pattern, level in ZH_NUMBERED:
        if pattern.match(text):
            return level
    decimal = DECIMAL_NUMBERED.match(text)
    return min(decimal.group(1).count(".") + 2, 6) if decimal else 0


def _may_be_heading(text: str) -> bool:
    return len(text) <= LONGEST_HEADING and not text.endswith(SENTENCE_END) and "\n" not in text


def _one_line(text: str) -> str:
    return " ".join(text.split())
