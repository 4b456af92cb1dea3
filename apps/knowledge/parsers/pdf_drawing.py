"""One page of a PDF as a picture, with words of its text highlighted where they stand."""

import hashlib
import io
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from apps.knowledge.parsers.parsed import Parsed, ParseFailure, Picture

LONGEST_SIDE = 1_800  # pixels
DOTS_A_POINT = 150 / 72
YELLOW = (255, 228, 122)  # multiplied with the page, so that letters stay black
MOST_LETTERS = 60_000  # of a page; more is a drawing made of letters
PAGES_ON = 2  # a passage is cited with the page where it begins; its words may stand on one of the next
PIECE = re.compile(r"[^\n|。！？；.!?;]+")
LEAST_PIECE = 8  # letters; a shorter one stands in many places
ENOUGH = 0.4  # share of the words that must be found to mark any


def draw_page(file: BinaryIO, *, page: int, marked: str, password: str = "") -> Parsed:
    """Return page ``page`` (from 1) as the one picture of a ``Parsed``, ``marked`` highlighted on it.

    Where the words stand on one of the next pages instead, that page; its number is the picture's. Words
    that are on none (a scan, a text that was put in order) leave the page as it is.

    Raises:
        ParseFailure: password_required, broken_file.
    """
    try:
        document = pdfium.PdfDocument(file.read(), password=password or None)
        number, spans = _find(document, page, "".join(letter for letter, _at in _letters(enumerate(marked))), marked)
        return Parsed("", pictures=[_draw(document[number - 1], number, spans)])
    except pdfium.PdfiumError as error:
        locked = getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        raise ParseFailure("password_required" if locked else "broken_file") from error
    except (IndexError, ValueError) as error:
        raise ParseFailure("broken_file", reason="a page that cannot be drawn") from error


def _find(document: Any, page: int, wanted: str, marked: str) -> tuple[int, list[tuple[int, int]]]:
    """Return the page that holds the words, and where: first letter and number of letters of each piece."""
    if wanted:
        for number in range(page, min(page + PAGES_ON, len(document)) + 1):
            textpage = document[number - 1].get_textpage()
            count = min(textpage.count_chars(), MOST_LETTERS)
            signs = ((at, chr(raw.FPDFText_GetUnicode(textpage, at))) for at in range(count))
            spans = _spans(list(_letters(signs)), wanted, marked)
            if spans:
                return number, spans
    return page, []


def _letters(signs: Any) -> Iterator[tuple[str, int]]:
    """Yield letters and digits as they are compared, each with its place; spaces, hyphens and markup are none."""
    for at, sign in signs:
        for letter in unicodedata.normalize("NFKC", sign).lower():
            if letter.isalnum():
                yield letter, at


def _spans(letters: list[tuple[str, int]], wanted: str, marked: str) -> list[tuple[int, int]]:
    text = "".join(letter for letter, _at in letters)
    place = text.find(wanted)
    if place >= 0:
        return [_span(letters, place, len(wanted))]
    found, covered, after = [], 0, 0
    for match in PIECE.finditer(marked):  # cells of a table, sentences about a footnote
        piece = "".join(letter for letter, _at in _letters(enumerate(match.group())))
        place = text.find(piece, after)
        if len(piece) >= LEAST_PIECE and place >= 0:
            found.append(_span(letters, place, len(piece)))
            covered, after = covered + len(piece), place + len(piece)
    return found if covered >= ENOUGH * len(wanted) else []


def _span(letters: list[tuple[str, int]], place: int, length: int) -> tuple[int, int]:
    first = letters[place][1]
    return first, letters[place + length - 1][1] - first + 1


def _draw(page: Any, number: int, spans: list[tuple[int, int]]) -> Picture:
    from PIL import Image, ImageChops, ImageDraw

    bitmap = page.render(scale=min(DOTS_A_POINT, LONGEST_SIDE / max(*page.get_size(), 1.0)))
    image = bitmap.to_pil().convert("RGB")
    if spans:
        textpage, places = page.get_textpage(), bitmap.get_posconv(page)
        light = Image.new("RGB", image.size, "white")
        brush = ImageDraw.Draw(light)
        for first, count in spans:
            for at in range(textpage.count_rects(first, count)):
                left, bottom, right, top = textpage.get_rect(at)
                (a, b), (c, d) = places.to_bitmap(left, top), places.to_bitmap(right, bottom)
                brush.rectangle((min(a, c) - 2, min(b, d) - 2, max(a, c) + 2, max(b, d) + 2), fill=YELLOW)
        image = ImageChops.multiply(image, light)
    out = io.BytesIO()
    image.save(out, "WEBP", quality=80, method=2)
    data = out.getvalue()
    name = f"{hashlib.sha256(data).hexdigest()[:24]}.webp"
    return Picture(name, "image/webp", data, image.width, image.height, number)
