"""Pictures in a PDF's pages of text: taken out as they are stored, at the end of their page."""

import io
import time
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from apps.knowledge.parsers.illustrations import illustrate, wanted

LEAST_PIXELS = 120 * 80  # smaller ones are marks and logos
MOST_ON_A_PAGE = 20  # more are the pieces of a drawing
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
