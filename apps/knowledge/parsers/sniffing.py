"""What a file is, by its content; its name only breaks ties between kinds of text.

Only the first and the last part of the file are looked at, and nothing is unpacked, so this is safe
in the web process: a wrong file is refused at once, a hostile one is left to the sandbox.
"""

import re
from pathlib import PurePath
from typing import IO, Any

from apps.knowledge.errors import TypeMismatch, UnsupportedFileType
from apps.knowledge.parsers import DOCX, PARSERS

EDGE_BYTES = 1 << 20
ZIP = "application/zip"
OLE = "application/x-ole-storage"
UNKNOWN = "application/octet-stream"

MAGIC = (
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"{\\rtf", "application/rtf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"RIFF", "audio/x-wav"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ", "application/x-executable"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"ITSF", "application/vnd.ms-htmlhelp"),
)
IN_ZIP = (
    (b"application/epub+zip", "application/epub+zip"),
    (b"application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
    (b"application/vnd.oasis.opendocument.spreadsheet", "application/vnd.oasis.opendocument.spreadsheet"),
    (b"application/vnd.oasis.opendocument.presentation", "application/vnd.oasis.opendocument.presentation"),
    (b"word/", DOCX),
    (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
)
ENDINGS = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".docx": DOCX,
    ".docm": DOCX,
    ".eml": "message/rfc822",
    ".mbox": "application/mbox",
    ".mht": "multipart/related",
    ".mhtml": "multipart/related",
    ".ipynb": "application/x-ipynb+json",
    ".rtf": "application/rtf",
}
TEXT_ENDINGS = frozenset({".txt", ".text", ".log", ".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".ini"})
BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
HTML_START = re.compile(
    rb"\A\s*+(?:<\?xml[^>]*>\s*)?+(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
XML_START = re.compile(rb"\A\s*<\?xml|\A\s*<svg\b", re.I)
CONTROL = bytes({*range(32)} - {8, 9, 10, 12, 13, 27})


def sniff_file(file: IO[Any], name: str) -> str:
    """Return the content type of a file that can be read; leaves the position anywhere.

    Raises:
        UnsupportedFileType: no parser is registered for what it is.
        TypeMismatch: so, and its name promises a format that one is registered for.
    """
    file.seek(0)
    head = file.read(EDGE_BYTES)
    size = file.seek(0, 2)
    tail = b""
    if size > len(head):
        file.seek(max(len(head), size - EDGE_BYTES))
        tail = file.read(EDGE_BYTES)
    found = sniff(head, tail, name)
    if found in PARSERS:
        return found
    ending = PurePath(name).suffix.lower()
    if ENDINGS.get(ending, "") in PARSERS or ending in TEXT_ENDINGS or ending == ".pdf":
        raise TypeMismatch(extension=ending, content_type=found)
    raise UnsupportedFileType(content_type=found)


def sniff(head: bytes, tail: bytes, name: str) -> str:
    """Return the content type of a file with this beginning, end and name."""
    promised = ENDINGS.get(PurePath(name).suffix.lower(), "")
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    for magic, found in MAGIC:
        if head.startswith(magic):
            if found == ZIP:
                return _in_zip(head, tail, promised)
            return _in_ole(head, tail, promised) if found == OLE else found
    if not _is_text(head):
        return UNKNOWN
    if HTML_START.match(head[:65536].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")):
        return "multipart/related" if promised == "multipart/related" else "text/html"
    if promised and promised != DOCX:
        return promised
    return "application/xml" if XML_START.match(head[:1024].removeprefix(b"\xef\xbb\xbf")) else "text/plain"


def _in_zip(head: bytes, tail: bytes, promised: str) -> str:
    for mark, found in IN_ZIP[:4]:
        if mark in head[:4096]:
            return found
    for mark, found in IN_ZIP[4:]:
        if mark in tail or mark in head:
            return found
    return promised if promised == DOCX else ZIP


def _in_ole(head: bytes, tail: bytes, promised: str) -> str:
    """Tell an encrypted office file, which its parser refuses with the right word, from an old one."""
    if "EncryptedPackage".encode("utf-16-le") in head + tail:
        return DOCX if promised == DOCX else "application/x-encrypted-office"
    for stream, found in (("WordDocument", "application/msword"), ("Workbook", "application/vnd.ms-excel")):
        if stream.encode("utf-16-le") in head + tail:
            return found
    return OLE


def _is_text(head: bytes) -> bool:
    if head.startswith(BOMS):
        return True
    sample = head[:65536]
    if sample.count(0) > len(sample) // 5:
        from apps.knowledge.parsers.encodings import decode

        text, encoding = decode(sample[: len(sample) // 4 * 4])
        return encoding.startswith("utf-") and text.count("\x00") + text.count("\ufffd") <= len(text) // 50
    return len(sample) - len(sample.translate(None, CONTROL)) <= 2 + len(sample) // 50
