"""Pictures in a PDF's pages of text: taken out as they are stored, at the end of their page."""

import io
import time
from collections.abc import Sequence
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from apps.knowledge.parsers.illustrations import illustrate, wanted

LEAST_PIXELS = 120 * 80  # smaller ones are marks and logos
MOST_ON_A_PAGE = 20  # more are the pieces of a drawing
MOST_DRAWN = 20  # pages of a PDF inside another file that are made pictures of
DOTS_A_POINT, LONGEST_SIDE = 200 / 72, 2_400
BUDGET_S = 10.0  # of one document
PAGE_COVERED = 0.9  # a picture that fills the page is its background


class PictureFinder:
    """Finds the pictures of one document's pages until its time is used up."""

    def __init__(self) -> None:
        self.until = time.monotonic() + BUDGET_S
        self.seen: set[str] = set()

    def references(self, page: Any, number: int) -> str:
        """Return the references to a page's pictures; one of an earlier page, such as a logo, is not shown again."""
        if not wanted() or time.monotonic() > self.until:
            return ""
        shown = [one for one in _pictures(page, number) if one not in self.seen]
        self.seen.update(shown)
        return "\n\n".join(dict.fromkeys(shown))


def _pictures(page: Any, number: int) -> list[str]:
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


def drawn(data: bytes, numbers: Sequence[int]) -> str:
    """Return references to pages of a PDF inside another file as pictures, which are recognised as such."""
    shown = []
    try:
        document = pdfium.PdfDocument(data)
        for number in numbers[:MOST_DRAWN]:
            page = document[number - 1]
            out = io.BytesIO()
            scale = min(DOTS_A_POINT, LONGEST_SIDE / max(*page.get_size(), 1.0))
            page.render(scale=scale, grayscale=True).to_pil().convert("L").save(out, "JPEG", quality=85)
            shown.append(illustrate(out.getvalue()))
    except (pdfium.PdfiumError, OSError, ValueError):
        pass  # what has been drawn so far is kept
    return "\n\n".join(filter(None, shown))
