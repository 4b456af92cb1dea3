"""PDF: text page by page in reading order, headings by size, page numbers kept; pages of pictures are named."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from apps.common.text import legible
from apps.knowledge.parsers.paragraphs import BULLET, CHAPTER, HYPHENS, SENTENCE_END, chapter_level, joined
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, join_pages, tidy
from apps.knowledge.parsers.pdf_pictures import PictureFinder
from apps.knowledge.parsers.pdf_tables import Table, TableFinder
from apps.knowledge.parsers.properties import pdf_properties

EDGE_LINES = 2  # at the top and bottom of a page, where running heads stand
MARGIN = 0.15  # of the page's height
HEADING_RATIO = 1.15
NUMBERED_RATIO = 1.04  # enough where a number stands before it
SPACE_RATIO = 1.3  # times the usual distance of lines
LONGEST_HEADING, SHORT_HEADING = 120, 70
SHORT_LINE, FULL_SHARE = 20, 0.75  # characters; share of the usual line above which a line is full
LONGEST_RUNNING_HEAD = 60  # characters, where it may differ by numbers
TEXT_OF_A_PAGE = 8  # characters other than white space; fewer on a page of pictures are a scanner's stamp
TEXT_BESIDE_A_SCAN = 250  # fewer, on a page that a picture covers, are its heading or stamp
COVERED = 0.6  # share of the page
MOST_OBJECTS = 20_000  # of a page; a map is neither a table nor a picture
NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+(?=[A-Z\u4e00-\u9fff])(?!.*[.;,:。；，：]$)")
NOT_HEADING = re.compile(r"^#{1,6}(?=\s|$)")  # a sign of the text, that Markdown would take for its own
NUMBERS = re.compile(r"\d+|\b[ivxlc]+\b", re.I)


@dataclass(slots=True)
class _Line:
    text: str
    size: float  # height of its first letter in points, 0 where unknown
    top: float = 0.0  # where it stands, in points from the page's foot
    marginal: bool = False  # in the strip at the page's top or foot where running heads stand
    apart: bool = False  # more space above it than lines of one paragraph have
    left: float = 0.0
    table: Table | None = None  # stands in the place of its lines


def parse_pdf(file: BinaryIO, *, password: str = "") -> Parsed:
    """Read a PDF.

    Raises:
        ParseFailure: password_required, empty_file, broken_file.
    """
    try:
        document = pdfium.PdfDocument(file.read(), password=password or None)
    except pdfium.PdfiumError as error:
        locked = getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        raise ParseFailure("password_required" if locked else "broken_file") from error
    sheets = _Sheets(document)
    pages, unread = sheets.lines, sheets.unread
    if not unread and not any(map(_weight, pages)):
        raise ParseFailure("empty_file")
    metadata: dict[str, Any] = {"page_count": len(pages), **pdf_properties(document)}
    if sheets.tables.skipped:
        metadata["tables_skipped"] = sheets.tables.skipped
    _drop_running_heads(pages)
    _join_tables(pages)
    sizes = _sizes(pages)
    texts = [tidy(legible(_page_markdown(page, sizes))) for page in pages]
    shown = ("\n\n".join(filter(None, pair)) for pair in zip(texts, sheets.shown, strict=True))
    markdown, marks = join_pages(enumerate(shown, start=1))
    return Parsed(markdown, marks, metadata, unread)


class _Sheets:
    """What is on each page: lines with tables in their place, references to pictures, and whether its text is drawn."""

    def __init__(self, document: Any) -> None:
        self.lines: list[list[_Line]] = []
        self.shown: list[str] = []
        self.unread: list[int] = []  # numbers of pages whose text is a picture
        self.tables, self.pictures = TableFinder(), PictureFinder()
        for index in range(len(document)):
            self.lines.append([])
            self.shown.append("")
            try:
                page = document[index]
                self._read(page, index + 1)
                page.close()
            except pdfium.PdfiumError:
                self.unread.append(index + 1)  # recognition fails on it too, and the document says so

    def _read(self, page: Any, number: int) -> None:
        textpage = page.get_textpage()
        lines = _lines(textpage, page.get_height())
        self.lines[-1] = lines
        paths, pictures = _objects(page)
        if _is_drawn(page, _weight(lines), pictures):
            self.unread.append(number)
        else:
            if lines and paths:
                self.lines[-1] = _with_tables(lines, self.tables.tables(paths, textpage))
            if pictures:
                self.shown[-1] = self.pictures.references(page, number)
        textpage.close()


def _objects(page: Any) -> tuple[list[Any], bool]:
    """Return a page's paths, and whether it may show pictures. Raw, since there are hundreds on each page."""
    paths, pictures = [], False
    for index in range(min(raw.FPDFPage_CountObjects(page), MOST_OBJECTS)):
        one = raw.FPDFPage_GetObject(page, index)
        kind = raw.FPDFPageObj_GetType(one)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            paths.append(one)
        elif kind != raw.FPDF_PAGEOBJ_TEXT:
            pictures = True  # an image, or a form that may hold one
    return paths, pictures


def _is_drawn(page: Any, weight: int, pictures: bool) -> bool:
    """Whether a page shows more text than it holds: it holds next to none, or little beside a picture of a page."""
    if weight < TEXT_OF_A_PAGE:
        return bool(raw.FPDFPage_CountObjects(page))
    if weight >= TEXT_BESIDE_A_SCAN or not pictures:
        return False
    width, height = page.get_size()
    for picture in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=4):
        left, bottom, right, top = picture.get_bounds()
        if (min(right, width) - max(left, 0)) * (min(top, height) - max(bottom, 0)) > COVERED * width * height:
            return True
    return False


def _lines(textpage: Any, page_height: float) -> list[_Line]:
    text = textpage.get_text_range()
    exact = len(text) == textpage.count_chars()  # else an index into the text is not a letter's index
    lines, at = [], 0
    for piece in re.split(r"(\r?\n)", text):
        if piece.strip():
            first = at + len(piece) - len(piece.lstrip())
            size, top, left = _place(textpage, first) if exact else (0.0, 0.0, 0.0)
            marginal = bool(size) and not MARGIN <= top / (page_height or 1) <= 1 - MARGIN
            words = NOT_HEADING.sub(r"\\\g<0>", piece.strip().replace("\u00a0", " "))
            lines.append(_Line(words, size, top, marginal, left=left))
        elif "\n" in piece and lines and lines[-1].text and not piece.strip("\r\n") and at and text[at - 1] == "\n":
            lines.append(_Line("", 0.0))
        at += len(piece)
    _find_spaces(lines)
    return lines


def _find_spaces(lines: list[_Line]) -> None:
    """Set ``apart``. A line that holds hyphens stands for several: pdfium joins what a hyphen cut."""
    pairs = [(a, b) for a, b in pairwise(lines) if a.top > b.top and b.size]
    steps = [(a.top - b.top) / (1 + sum(map(a.text.count, HYPHENS))) for a, b in pairs]
    usual = median(steps) if steps else 0.0
    for (_before, line), step in zip(pairs, steps, strict=True):
        line.apart = step > max(usual, line.size * 0.8) * SPACE_RATIO


def _place(textpage: Any, index: int) -> tuple[float, float, float]:
    """Return a letter's height, its upper and its left edge."""
    try:
        left, bottom, right, top = textpage.get_charbox(index, loose=True)
    except pdfium.PdfiumError:
        return 0.0, 0.0, 0.0
    height = abs(top - bottom)
    return round(float(min(height, abs(right - left) * 8 or height)), 1), round(float(top), 1), float(left)


def _with_tables(lines: list[_Line], tables: list[Table]) -> list[_Line]:
    """Return the lines with each table in the place of its first one."""
    for table in tables:
        inside = [n for n in lines if n.size and not n.table and table.box.holds(n.left, n.top - n.size / 2)]
        if inside:
            gone = set(map(id, inside))
            lines[lines.index(inside[0])] = _Line("|", 0.0, inside[0].top, table=table)
            lines = [line for line in lines if id(line) not in gone]
    return lines


def _join_tables(pages: list[list[_Line]]) -> None:
    """Let a table that ends a page lend its header to the one that goes on with it at the head of the next."""
    for above, below in pairwise(pages):
        last = next((line for line in reversed(above) if line.text and not line.marginal), None)
        first = next((line for line in below if line.text and not line.marginal), None)
        if last and first and last.table and first.table and first.table.continues(last.table):
            first.table.go_on(last.table)


def _weight(lines: list[_Line]) -> int:
    return sum(len(line.text.replace(" ", "")) for line in lines)


def _drop_running_heads(pages: list[list[_Line]]) -> None:
    """Remove lines at the pages' edges that come back at one height on most pages; nothing else.

    A line that differs by its numbers alone is the same line, unless it is long or larger than the
    body: those are sentences and headings that happen to be alike.
    """
    if len(pages) < 3:
        return
    body = _body_size(pages)
    seen: Counter[tuple[str, int]] = Counter()
    for page in pages:
        seen.update({_shape(line, body) for line in _edges(page)})
    needed = max(3, round(len(pages) * 0.4))  # left and right pages may have heads of their own
    for page in pages:
        gone = {id(line) for line in _edges(page) if seen[_shape(line, body)] >= needed}
        page[:] = [line for line in page if id(line) not in gone]


def _edges(page: list[_Line]) -> list[_Line]:
    """Return the page's highest and lowest lines, by where they stand, not by when they were written."""
    filled = sorted((line for line in page if line.text), key=lambda line: -line.top)
    edges = filled[:EDGE_LINES] + filled[max(EDGE_LINES, len(filled) - EDGE_LINES) :]
    return [line for line in edges if line.marginal]


def _shape(line: _Line, body: float) -> tuple[str, int]:
    text = "".join(line.text.split())
    alike = len(text) <= LONGEST_RUNNING_HEAD and line.size <= body * HEADING_RATIO
    return NUMBERS.sub("#", text) if alike else text, round(line.top / 6)


def _body_size(pages: list[list[_Line]]) -> float:
    """Return the size that most of the text has, 0 where no size is known."""
    weight: Counter[float] = Counter()
    for page in pages:
        for line in page:
            weight[line.size] += len(line.text)
    return weight.most_common(1)[0][0] if weight else 0.0


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What sizes of letters mean in one document."""

    body: float
    levels: dict[float, int]  # of sizes clearly larger than the body's

    def level(self, line: _Line) -> int:
        """Return a line's heading level: by its size, or by a number before it where it also stands out.

        It stands out by being a little larger, or, with a number of several parts, by the space above it.
        """
        text = line.text
        if not text[:1].isalnum() or len(text) > LONGEST_HEADING or not any(map(str.isalpha, text)):
            return 0
        if line.size in self.levels:
            return self.levels[line.size]
        chapter = CHAPTER.match(text) if self.body else None
        if chapter and (line.size > self.body * NUMBERED_RATIO or line.apart):
            return chapter_level(chapter)
        numbered = NUMBERED.match(text) if self.body else None
        if numbered is None:
            return 0
        parts = numbered.group(1).count(".") + 1
        stands_out = line.size > self.body * NUMBERED_RATIO or (parts > 1 and line.apart and len(text) <= SHORT_HEADING)
        return min(parts + 1, 6) if stands_out else 0


def _sizes(pages: list[list[_Line]]) -> _Sizes:
    """Rank the sizes clearly larger than the body's, largest first, at most four levels."""
    body = _body_size(pages)
    weight: Counter[float] = Counter()
    for page in pages:
        for line in page:
            if line.size:
                weight[line.size] += len(line.text)
    larger = [size for size in sorted(weight, reverse=True) if size > body * HEADING_RATIO]
    if not body or sum(weight[size] for size in larger) > weight.total() * 0.25:
        return _Sizes(0.0, {})  # a slide or a form: size says nothing about structure
    levels: dict[float, int] = {}
    level, last = 0, 0.0
    for size in larger:
        if not last or size < last * 0.93:
            level, last = level + 1, size
        if level <= 4:
            levels[size] = level
    return _Sizes(body, levels)


def _page_markdown(page: list[_Line], sizes: _Sizes) -> str:
    widths = sorted(len(line.text) for line in page if len(line.text) > SHORT_LINE)
    full = widths[len(widths) // 2] * FULL_SHARE if widths else 0.0
    blocks: list[str] = []
    before: _Line | None = None
    for line in page:
        level = 0 if line.table else sizes.level(line)
        if line.table:
            blocks.append(line.table.markdown)
        elif level and before and sizes.level(before) == level and blocks:
            blocks[-1] = joined(blocks[-1], line.text)
        elif level:
            blocks.append(f"{'#' * level} {line.text.strip(HYPHENS)}")
        elif before and before.table and line.text:
            blocks.append(line.text)
        elif before and before.text and line.text and not sizes.level(before) and _continues(before, line, full):
            blocks[-1] = joined(blocks[-1], line.text)
        elif before and before.text and line.text and not line.apart and not sizes.level(before):
            blocks[-1] += f"\n{line.text}"
        elif line.text:
            blocks.append(line.text)
        before = line
    return "\n\n".join(blocks).translate({ord(mark): None for mark in HYPHENS})


def _continues(before: _Line, line: _Line, full: float) -> bool:
    """Whether a line goes on with the sentence of the line before: that one is full and does not end it."""
    if before.text[-1] in HYPHENS:
        return True
    return len(before.text) >= full and not before.text.endswith(SENTENCE_END) and not BULLET.match(line.text)
