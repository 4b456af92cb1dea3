"""Pictures: their facts, and their frames as pixels. What is written on them ``recognition`` reads."""

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from PIL import Image, ImageOps, UnidentifiedImageError

from apps.common.text import legible
from apps.knowledge.parsers.illustrations import illustrate
from apps.knowledge.parsers.parsed import Parsed, ParseFailure

FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP", "HEIF")
MOST_PIXELS = 120_000_000  # a sheet of A0 at 200 dots an inch has 62 million
MOST_FRAMES = 500
SMALLEST_SIDE = 16  # nothing can be read on less
TAKEN, MADE_WITH, DESCRIPTION = 0x9003, 0x0131, 0x010E  # tags of EXIF
EXIF = 0x8769
BROKEN = (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError, KeyError, IndexError, TypeError)


def parse_picture(file: BinaryIO) -> Parsed:
    """Return a picture's facts, and as pages yet to be read its frames: one, or those of a scanner's TIFF.

    Raises:
        ParseFailure: broken_file; suspicious_file for more pixels than any scanner gives.
    """
    with _opened(file) as picture:
        shown = illustrate(_data(file))
        frames = min(getattr(picture, "n_frames", 1), MOST_FRAMES) if picture.format == "TIFF" else 1
        facts = {"picture": picture.format, "width": picture.width, "height": picture.height, **_notes(picture)}
        readable = min(picture.size) >= SMALLEST_SIDE
    if frames > 1:
        facts["page_count"] = frames
    numbers = range(1, frames + 1)
    places = [(number, 0 if number == 1 else len(shown)) for number in numbers]
    return Parsed(shown, places, facts, list(numbers) if readable else [])


def _data(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


@contextmanager
def frame(file: BinaryIO, number: int, *, longest_side: int) -> Iterator[Image.Image]:
    """Open one frame, from 1, as RGB, upright, on white, no larger than ``longest_side``.

    Raises:
        ParseFailure: broken_file, suspicious_file.
    """
    with _opened(file) as picture:
        try:
            if number > 1:
                picture.seek(number - 1)
                _bounded(picture)
            picture.draft("RGB", (longest_side, longest_side))
            picture.thumbnail((longest_side, longest_side))
            upright = ImageOps.exif_transpose(picture)
            yield as_rgb(upright)
        except BROKEN as error:
            raise ParseFailure("broken_file", reason="a picture") from error


@contextmanager
def _opened(file: BinaryIO) -> Iterator[Image.Image]:
    Image.MAX_IMAGE_PIXELS = None  # our own limit is checked before anything is unpacked
    if not Image.registered_extensions().get(".heic"):
        import pillow_heif

        pillow_heif.register_heif_opener(thumbnails=False)
    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            picture = Image.open(file, formats=FORMATS)
    except BROKEN as error:
        raise ParseFailure("broken_file", reason="a picture") from error
    with picture:
        _bounded(picture)
        yield picture


def _bounded(picture: Image.Image) -> None:
    if picture.width * picture.height > MOST_PIXELS:
        raise ParseFailure("suspicious_file", reason=f"{picture.width} × {picture.height} pixels")


def as_rgb(picture: Image.Image) -> Image.Image:
    """Return the picture as RGB: what is transparent lies on white, and 16-bit greys are scaled to 8."""
    if picture.mode.startswith("I;16"):
        picture = picture.point(lambda value: value / 256).convert("L")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        clear = picture.convert("RGBA")
        page = Image.new("RGBA", clear.size, "white")
        page.alpha_composite(clear)
        return page.convert("RGB")
    return picture.convert("RGB")


def _notes(picture: Image.Image) -> dict[str, Any]:
    """Return when a picture was taken and what its author wrote about it; nothing of where."""
    try:
        exif = picture.getexif()
        taken = str(exif.get_ifd(EXIF).get(TAKEN) or "")
        said = str(exif.get(DESCRIPTION) or "")
    except (*BROKEN, struct.error):
        return {}
    notes = {"created": taken.replace(":", "-", 2), "description": said}
    return {name: clean for name, text in notes.items() if (clean := legible(text).strip()[:300])}
