"""Pages of drawn text: XPS, Visio (.vsdx) and Apple Pages, each page or sheet in the order of the file."""

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.docx_styles import local
from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

DIGITS = re.compile(r"(\d+)")
SAME_LINE = 2.0  # units of height that two runs of one line may differ by


def parse_xps(file: BinaryIO) -> Parsed:
    """Read an XPS file's pages. Raises ParseFailure: broken_file, suspicious_file, empty_file."""
    package = Package(file)
    return _paged(package, [name for name in package.names() if name.endswith(".fpage")], _glyph_lines)


def parse_vsdx(file: BinaryIO) -> Parsed:
    """Read a Visio drawing's pages. Raises ParseFailure: broken_file, suspicious_file, empty_file."""
    package = Package(file)
    names = [name for name in package.names("visio/pages/page") if re.search(r"/page\d+\.xml$", name)]
    return _paged(package, names, _shapes)


def parse_apple_pages(file: BinaryIO) -> Parsed:
    """Read a Pages document: its own text, or the preview that newer ones carry. Raises ParseFailure as above."""
    package = Package(file)
    root = package.xml("index.xml")
    if root is None:
        preview = package.read("QuickLook/Preview.pdf") or package.read("preview.pdf")
        if preview is None:
            raise ParseFailure("broken_file", reason="no text and no preview in it")
        from apps.knowledge.parsers.pdf import parse_pdf

        return parse_pdf(io.BytesIO(preview))
    lines = ("".join(one.itertext()) for one in root.iter() if local(one) == "p")
    markdown = tidy(legible("\n\n".join(line.strip() for line in lines if line.strip())))
    if not markdown:
        raise ParseFailure("empty_file")
    return Parsed(markdown)


def _paged(package: Package, names: list[str], read: Any) -> Parsed:
    names.sort(key=lambda name: [int(part) if part.isdigit() else part for part in DIGITS.split(name)])
    markdown, pages = "", []
    for number, name in enumerate(names, start=1):
        root = package.xml(name)
        text = "" if root is None else tidy(legible("\n".join(read(root)))).strip()
        separator = "\n\n" if markdown and text else ""
        pages.append((number, len(markdown) + len(separator)))
        markdown += separator + text
    if not markdown:
        raise ParseFailure("empty_file")
    return Parsed(markdown, pages, {"page_count": len(names)})


def _glyph_lines(root: Any) -> Iterator[str]:
    """Yield lines: runs that stand at one height, one after the other."""
    line, height = "", None
    spaced = any(" " in one.get("UnicodeString", "").strip() for one in root.iter())  # else gaps are drawn
    for one in root.iter():
        text = one.get("UnicodeString", "").removeprefix("{}") if local(one) == "Glyphs" else ""
        if not text:
            continue
        at = _number(one.get("OriginY", "0"))
        if height is not None and abs(at - height) > SAME_LINE:
            yield line
            line = ""
        glue = "" if spaced or not line else " "
        line, height = line + glue + text, at
    yield line


def _shapes(root: Any) -> Iterator[str]:
    for one in root.iter():
        if local(one) == "Text":
            text = "".join(one.itertext()).strip()
            if text:
                yield f"{text}\n"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
