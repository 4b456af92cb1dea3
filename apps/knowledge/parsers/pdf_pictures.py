"""Pictures in a PDF's pages of text: taken out as they are stored, at the end of their page."""

import io
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from apps.knowledge.parsers.illustrations import illustrate, wanted

LEAST_PIXELS = 120 * 80  # smaller ones are marks and logos
MOST_ON_A_PAGE = 20  # more are the pieces of a drawing
MOST_OBJECTS = 2_000  # of a page; a map has a hundred thousand strokes, and looking through them takes long
BUDGET_S = 10.0  # of one document
PAGE_COVERED = 0.9  # a picture that fills the page is its background


def references(document: Any, unread: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield (page number, references) of pages that show pictures; those of pages yet to be recognised are left out.

    A picture that stands on several pages, such as a logo, is shown on the first one.
    """
    until = time.monotonic() + BUDGET_S
    scans, seen = set(unread), set[str]()
    for index in range(len(document) if wanted() else 0):
        if index + 1 in scans:
            continue
        if time.monotonic() > until:
            return
        try:
            page = document[index]
            shown = [one for one in _pictures(page, index + 1) if one not in seen]
            page.close()
        except pdfium.PdfiumError:
            continue
        seen.update(shown)
        if shown:
            yield index + 1, "\n\n".join(dict.fromkeys(shown))


def _pictures(page: Any, number: int) -> list[str]:
    if raw.FPDFPage_CountObjects(page) > MOST_OBJECTS:
        return []
    width, height = page.get_size()
    found = []
    for one in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = one.get_bounds()
        if (right - left) * (top - bottom) > PAGE_COVERED * width * height:
            continue
        across, down = one.get_px_size()
        if across * down >= LEAST_PIXELS:
            found.append(one)
    return (
        [] if len(found) > MOST_ON_A_PAGE else [text for one in found if (text := illustrate(_data(one), page=number))]
    )


def _data(picture: Any) -> bytes | None:
    """Return a picture's file: JPEG as it is stored, everything else as PNG."""
    out = io.BytesIO()
    try:
        if picture.get_filters(skip_simple=True) == ["DCTDecode"]:
            return bytes(picture.get_data(decode_simple=True))
        picture.get_bitmap().to_pil().save(out, "PNG")
    except (pdfium.PdfiumError, OSError, ValueError, NotImplementedError):
        return None
    return out.getvalue()
