"""Pictures inside a document: kept beside its Markdown, which refers to each as ``![words](image:name)``.

The sandbox collects them around the parser, so that those of attachments and of files in archives come
along too. Where nobody collects there are no references.
"""

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from apps.common.text import legible
from apps.knowledge.parsers.parsed import Picture

MOST_PICTURES = 300
MOST_BYTES = 96 << 20  # of one document
LARGEST = 16 << 20
MOST_PIXELS = 40_000_000
SMALLEST_SIDE = 32  # pixels; bullets, rules and icons are smaller
SHOWN = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}  # by every browser
PICTURE_NAME = re.compile(r"[0-9a-f]{24}\.(?:png|jpeg|gif|webp)")
REFERENCE = re.compile(rf"!\[((?:\\.|[^\]\\])*+)\]\(image:({PICTURE_NAME.pattern})\)")
FILE_NAME = re.compile(r"\.(?:png|jpe?g|gif|bmp|emf|wmf|tiff?)$", re.I)
BRACKETS = re.compile(r"[\[\]\\]")
LONGEST_WORDS = 500


class Album:
    """The pictures of one document, each once."""

    def __init__(self) -> None:
        self.pictures: dict[str, Picture] = {}
        self.left_out = 0  # too many, too large, or of a kind that no browser shows
        self._bytes = 0

    def add(self, data: bytes, words: str, page: int | None) -> str:
        """Keep a picture; return the reference to it, "" for one that is not kept."""
        found = self._read(data, page) if len(data) <= LARGEST else None
        if found is None:
            self.left_out += 1
            return words
        if min(found.width, found.height) < SMALLEST_SIDE:
            return words
        if found.name not in self.pictures:
            if len(self.pictures) >= MOST_PICTURES or self._bytes + len(found.data) > MOST_BYTES:
                self.left_out += 1
                return words
            self.pictures[found.name] = found
            self._bytes += len(found.data)
        return reference(found.name, words)

    def _read(self, data: bytes, page: int | None) -> Picture | None:
        from PIL import Image

        from apps.knowledge.parsers.pictures import BROKEN, FORMATS, as_rgb

        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
                width, height, kind = opened.width, opened.height, opened.format or ""
                if width * height > MOST_PIXELS:
                    return None
                if kind not in SHOWN:
                    if min(width, height) >= SMALLEST_SIDE:
                        out = io.BytesIO()
                        as_rgb(opened).save(out, "PNG")
                        data = out.getvalue()
                    kind = "PNG"
        except (*BROKEN, Image.DecompressionBombError):
            return None
        name = f"{hashlib.sha256(data).hexdigest()[:24]}.{kind.lower()}"
        return Picture(name, SHOWN[kind], data, width, height, page)


_album: ContextVar[Album | None] = ContextVar("album", default=None)


@contextmanager
def collected() -> Iterator[Album]:
    """Collect the pictures that parsers come upon."""
    album = Album()
    token = _album.set(album)
    try:
        yield album
    finally:
        _album.reset(token)


def illustrate(data: bytes | None, words: str = "", *, page: int | None = None) -> str:
    """Keep a picture that stands here; return what to write in its place: a reference, or its words alone."""
    album = _album.get()
    words = " ".join(legible(words).split())[:LONGEST_WORDS]
    return album.add(data, words, page) if album is not None and data else words


def leave_out() -> None:
    """Count a picture that stands here and cannot be kept: damaged where it is packed, or too large."""
    if album := _album.get():
        album.left_out += 1


def without_file_name(words: str) -> str:
    """Return what a picture's author says of it, "" where a program put the file's name there."""
    return "" if FILE_NAME.search(words) else words


def wanted() -> bool:
    """Whether somebody collects pictures, so that it is worth looking for them."""
    return _album.get() is not None


def reference(name: str, words: str) -> str:
    """Return the Markdown that shows a picture."""
    escaped = BRACKETS.sub(r"\\\g<0>", words)
    return f"![{escaped}](image:{name})"


def without_references(markdown: str) -> str:
    """Return Markdown with the words of pictures in their place."""
    return REFERENCE.sub(r"\1", markdown) if "](image:" in markdown else markdown
