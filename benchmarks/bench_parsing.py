"""Reading files: PDF text against pypdfium2 alone, tables and recognition against their limits, large texts.

CPU is that of one process, in which the parsers run as they do in the sandbox; the large texts go through the sandbox.
"""

import io
import resource
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.bench_ingestion import text
from benchmarks.report import Ratio

PAGES = 80
TABLE_PAGES = 60
SCANS = 5
LARGE_BYTES, VAST_BYTES = 8_000_000, 100_000_000
LINE = "the heating of the house is switched on in October and off again in April unless it is warm"


def pdf(pages: list[list[str]]) -> bytes:
    """Return a PDF of pages given as drawing operators."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for page in pages:
        content = "\n".join(page)
        objects.append(f"<</Length {len(content)}>>\nstream\n{content}\nendstream")
        about = f"/MediaBox[0 0 612 792]/Contents {len(objects)} 0 R/Resources<</Font<</F 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R{about}>>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    out, places = "%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{one}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    trailer = f"trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF"
    return f"{out}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def prose(number: int) -> list[str]:
    """Return a page of 45 lines."""
    return [f"BT /F 10 Tf 50 {760 - 15 * row} Td ({LINE} {number} {row}) Tj ET" for row in range(45)]


def ruled(number: int) -> list[str]:
    """Return a page with a table of 40 rows and 6 columns."""
    lines = [f"50 {760 - 16 * row} m 590 {760 - 16 * row} l S" for row in range(41)]
    lines += [f"{50 + 90 * column} 760 m {50 + 90 * column} 120 l S" for column in range(7)]
    cells = [(row, column) for row in range(40) for column in range(6)]
    return lines + [
        f"BT /F 9 Tf {53 + 90 * column} {748 - 16 * row} Td (cell {number} {row} {column}) Tj ET"
        for row, column in cells
    ]


def scan(number: int) -> bytes:
    """Return a scanned page of A4 at 200 dots an inch: 48 lines of print."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("L", (1654, 2339), 250)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(28)
    for row in range(48):
        draw.text((120, 120 + 44 * row), f"{LINE} {number}", fill=20, font=font)
    out = io.BytesIO()
    page.save(out, "JPEG", quality=80)
    return out.getvalue()


def spent_s(work: Callable[[], object]) -> float:
    """Return CPU seconds of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def by_pdfium(data: bytes) -> None:
    """Take the text of each page with pypdfium2 alone."""
    import pypdfium2 as pdfium

    document = pdfium.PdfDocument(data)
    for page in document:
        page.get_textpage().get_text_range()


def large() -> float:
    """Return the seconds that an 8 MB text takes to be read and cut."""
    from apps.knowledge import chunkers
    from apps.knowledge.sandbox import reader

    data = io.BytesIO(text(7, LARGE_BYTES).encode())
    began = time.perf_counter()
    parsed = reader.read(data, "text/markdown")
    chunkers.cut("parent_child", {}, parsed.markdown, [], most_tokens=460, count_tokens=lambda part: len(part) // 4)
    return time.perf_counter() - began


def vast_mb() -> float:
    """Return by how many MB a process grows that has a text of 100 MB read. Measured first, on a file on disk."""
    from apps.knowledge.sandbox import reader

    part = text(7, 1_000_000).encode()
    with tempfile.TemporaryFile() as file:
        for _ in range(VAST_BYTES // len(part)):
            file.write(part)
        reader.read(io.BytesIO(b"warm"), "text/markdown")
        before = peak_mb()
        reader.read(file, "text/markdown")
        return peak_mb() - before


def peak_mb() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run() -> list[Ratio]:
    """Return the ratios of PDF pages, tables, recognised pages and large texts."""
    from apps.knowledge.parsers import recognition
    from apps.knowledge.parsers.illustrations import collected
    from apps.knowledge.parsers.pdf import parse_pdf
    from apps.knowledge.sandbox import reader

    grown = vast_mb()

    def ours(data: bytes) -> Any:
        with collected():
            return parse_pdf(io.BytesIO(data))

    written, tables = pdf([prose(at) for at in range(PAGES)]), pdf([ruled(at) for at in range(TABLE_PAGES)])
    by_pdfium(written), ours(written), ours(pdf([ruled(0)]))
    floor, page = spent_s(lambda: by_pdfium(written)), spent_s(lambda: ours(written))
    table = spent_s(lambda: ours(tables)) - spent_s(lambda: by_pdfium(tables))

    recognition.prepare()
    scans = [scan(at) for at in range(SCANS)]
    recognised = [
        spent_s(lambda one=one: recognition.recognise(io.BytesIO(one), "image/jpeg", page=1)) for one in scans
    ]
    wall = large()
    reader.close()
    return [
        Ratio("a page of a text PDF, against pypdfium2", page * 1000 / PAGES, floor * 1000 / PAGES, "ms CPU", 2.0),
        Ratio(f"the tables of {TABLE_PAGES} ruled pages, against 5 s", table, 5.0, "s CPU", 1.0),
        Ratio("a recognised page (median), against 20 s", sorted(recognised)[SCANS // 2], 20.0, "s CPU", 1.0),
        Ratio("an 8 MB text read and cut, against 1 MB/s", wall, LARGE_BYTES / 1e6, "s", 1.0),
        Ratio("a 100 MB text read, memory added to the worker, against 100 MB", grown, 100.0, "MB", 1.0),
    ]
