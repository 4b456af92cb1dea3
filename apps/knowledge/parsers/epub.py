"""E-books (.epub): chapters in their reading order."""

import posixpath
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import unquote

from apps.common.text import legible
from apps.knowledge.parsers.docx_styles import local
from apps.knowledge.parsers.html import fragment_to_markdown
from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.properties import facts
from apps.knowledge.parsers.xml import tree

CHAPTERS = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")

PROPERTIES = {"title": "title", "creator": "author", "language": "language", "date": "created"}


def parse_epub(file: BinaryIO) -> Parsed:
    """Read a book.

    Raises:
        ParseFailure: broken_file, suspicious_file, empty_file; password_required where it is locked.
    """
    package = Package(file)
    container = package.read("META-INF/container.xml")
    path = _first(tree(container.decode("utf-8", "replace")), "rootfile", "full-path") if container else ""
    data = package.read(path) if path else None
    if data is None:
        raise ParseFailure("broken_file", reason="no book in it")
    book = tree(data.decode("utf-8", "replace"))
    items = {one.get("id"): one for one in book.iter() if local(one) == "item"}
    order = [items[key] for one in book.iter() if local(one) == "itemref" and (key := one.get("idref")) in items]
    chapters = []
    for item in order or items.values():
        if item.get("media-type") not in CHAPTERS or "nav" in (item.get("properties") or "").split():
            continue
        place = _beside(path, item.get("href", ""))
        part = package.read(place)
        chapters.append(fragment_to_markdown(part, partial(_picture, package, place)) if part else "")
    markdown = tidy(legible("\n\n".join(filter(None, chapters)))).strip()
    if not markdown:
        raise ParseFailure("password_required" if package.read("META-INF/encryption.xml") else "empty_file")
    said = [(local(one), one.text) for one in book.iter()]
    return Parsed(markdown, metadata=dict(facts((PROPERTIES[name], text) for name, text in said if name in PROPERTIES)))


def _beside(path: str, address: str) -> str:
    """Return the place in the package that an address stands for, seen from a file in it."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(address)))


def _picture(package: Package, chapter: str, address: str) -> bytes | None:
    return None if ":" in address else package.picture(_beside(chapter, address))


def _first(root: Any, name: str, attribute: str) -> str:
    return next((one.get(attribute, "") for one in root.iter() if local(one) == name), "")
