"""What a file is, by its beginning, its end and its name. Pure, unpacks nothing, safe anywhere.

The content decides; the name only breaks ties between kinds of text, or where the part of the file
that would tell is out of sight.
"""

import io
import re
import zipfile
from pathlib import PurePath

from apps.knowledge.parsers.formats import FORMATS, Format

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
DOCX = f"{_OPEN_XML}.wordprocessingml.document"
XLSX = f"{_OPEN_XML}.spreadsheetml.sheet"
PPTX = f"{_OPEN_XML}.presentationml.presentation"
XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
XPS = "application/vnd.ms-xpsdocument"
VSDX = "application/vnd.ms-visio.drawing"
PAGES = "application/vnd.apple.pages"
ODT, ODS, ODP = f"{_OPEN_DOCUMENT}.text", f"{_OPEN_DOCUMENT}.spreadsheet", f"{_OPEN_DOCUMENT}.presentation"
EPUB = "application/epub+zip"
DOC, XLS, PPT = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
MSG, HWP, ONE = "application/vnd.ms-outlook", "application/x-hwp", "application/onenote"
ENCRYPTED_OFFICE = "application/x-encrypted-office"
RTF, DBF, FB2 = "application/rtf", "application/dbf", "application/x-fictionbook+xml"
PDF, ZIP, OLE = "application/pdf", "application/zip", "application/x-ole-storage"
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/tiff", "image/bmp", "image/webp", "image/heic")
RECORDINGS = ("audio/mpeg", "audio/x-wav", "audio/ogg", "audio/flac", "audio/mp4")
UNKNOWN = "application/octet-stream"

MAGIC = [
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3", ONE),
    (b"{\\rtf", RTF),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ", "application/x-executable"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"ITSF", "application/vnd.ms-htmlhelp"),
]
WORDS = (b"GIF8", b"ID3", b"OggS", b"fLaC", b"Rar!", b"MZ", b"ITSF")  # that a text may begin with as well
PDF_START = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*%PDF-\d")  # others have something before it: a text, or half a mail
RIFF = {b"WAVE": "audio/x-wav", b"WEBP": "image/webp"}
MPEG4 = {b"hei": "image/heic", b"mif": "image/heic", b"M4A": "audio/mp4"}
TYPED_ZIP = (EPUB, ODT, ODS, ODP)  # name themselves in their first entry
IN_ZIP = (
    ("word/", DOCX),
    ("xl/workbook.bin", XLSB),
    ("xl/", XLSX),
    ("ppt/", PPTX),
    ("visio/", VSDX),
    ("fixeddocseq.fdseq", XPS),
    ("fixeddocumentsequence.fdseq", XPS),
)
IN_OLE = (
    ("__properties_version1.0", MSG),  # first: messages hold other files
    ("EncryptedPackage", ENCRYPTED_OFFICE),
    ("HwpSummaryInformation", HWP),
    ("PowerPoint Document", PPT),
    ("WordDocument", DOC),
    ("Workbook", XLS),
    ("Book", XLS),
)
ZIP_ENDINGS = {
    ".docx": DOCX,
    ".docm": DOCX,
    ".xlsx": XLSX,
    ".xlsm": XLSX,
    ".xlsb": XLSB,
    ".pptx": PPTX,
    ".pptm": PPTX,
    ".ppsx": PPTX,
    ".odt": ODT,
    ".ods": ODS,
    ".odp": ODP,
    ".epub": EPUB,
    ".xps": XPS,
    ".vsdx": VSDX,
    ".pages": PAGES,
}
OLE_ENDINGS = {".doc": DOC, ".xls": XLS, ".ppt": PPT, ".pps": PPT, ".msg": MSG, ".hwp": HWP}
TEXT_ENDINGS = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".toml": "text/plain",
    ".ini": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".tab": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".xml": "application/xml",
    ".fb2": FB2,
    ".eml": "message/rfc822",
    ".mbox": "application/mbox",
    ".mht": "multipart/related",
    ".mhtml": "multipart/related",
    ".ipynb": "application/x-ipynb+json",
    ".rst": "text/x-rst",
    ".rest": "text/x-rst",
    ".adoc": "text/asciidoc",
    ".asciidoc": "text/asciidoc",
    ".org": "text/x-org",
    ".tex": "application/x-tex",
    ".vtt": "text/vtt",
    ".srt": "application/x-subrip",
}
OTHER_ENDINGS = {
    ".pdf": PDF,
    ".rtf": RTF,
    ".dbf": DBF,
    ".one": ONE,
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".mp3": "audio/mpeg",
    ".wav": "audio/x-wav",
}
PROMISES = {**ZIP_ENDINGS, **OLE_ENDINGS, **TEXT_ENDINGS, **OTHER_ENDINGS}


def learn(row: Format) -> None:
    """Know files of a format by how they begin and by the endings of their names."""
    MAGIC.extend((magic, row.content_type) for magic in row.magic)
    endings = dict.fromkeys(row.endings, row.content_type)
    (TEXT_ENDINGS if row.text else OTHER_ENDINGS).update(endings)
    PROMISES.update(endings)


for _row in FORMATS:
    learn(_row)

BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
HTML_START = re.compile(
    rb"\A\s*+(?:<\?xml[^>]*>\s*)?+(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
XML_START = re.compile(rb"\A\s*<\?xml|\A\s*<svg\b", re.I)
DBF_VERSIONS = frozenset(b"\x02\x03\x04\x05\x30\x31\x32\x43\x63\x83\x8b\x8e\xcb\xf5\xfb")
CONTROL = bytes({*range(32)} - {8, 9, 10, 12, 13, 27})


def sniff(head: bytes, tail: bytes, name: str) -> str:
    """Return the content type of a file with this beginning, end and name; ``tail`` is empty where ``head`` is all."""
    ending = PurePath(name).suffix.lower()
    for magic, found in MAGIC:
        if head.startswith(magic) and not (magic in WORDS and _is_text(head)):
            if found == ZIP:
                return _in_zip(head, tail, ending)
            return _in_ole(head + tail, ending) if found == OLE else found
    if b"%PDF-" in head[:1024] and (PDF_START.match(head) or ending not in TEXT_ENDINGS or not _is_text(head)):
        return PDF
    if head[:4] == b"RIFF" and head[8:12] in RIFF:
        return RIFF[head[8:12]]
    if head[4:8] == b"ftyp":
        return MPEG4.get(head[8:11], "video/mp4")
    if head[:2] == b"BM" and head[6:10] == bytes(4):
        return "image/bmp"
    if ending == ".dbf" and head[:1] and head[0] in DBF_VERSIONS and head[32:33]:
        return DBF
    return _text(head, ending) if _is_text(head) else UNKNOWN


def _text(head: bytes, ending: str) -> str:
    promised = TEXT_ENDINGS.get(ending, "")
    start = head[:65536].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    if HTML_START.match(start):
        return promised if promised in ("multipart/related", "message/rfc822") else "text/html"
    if promised and promised not in ("text/plain", "application/xml"):
        return promised
    if b"<FictionBook" in start[:2048]:
        return FB2
    if start.startswith(b"WEBVTT"):
        return "text/vtt"
    return "application/xml" if promised == "application/xml" or XML_START.match(start) else "text/plain"


def _in_zip(head: bytes, tail: bytes, ending: str) -> str:
    promised = ZIP_ENDINGS.get(ending, "")
    if head[30:38] == b"mimetype":
        for found in TYPED_ZIP:
            if head[38:].startswith(found.encode()):
                return found
    names = _names(tail or head)
    if "[content_types].xml" in names or (not names and promised):
        for mark, found in IN_ZIP:
            if any(name.startswith(mark) for name in names):
                return found
    if "meta-inf/container.xml" in names:
        return EPUB
    return promised if promised and (not names or promised in (PAGES, *TYPED_ZIP)) else ZIP


def _names(end: bytes) -> list[str]:
    """Return the names in a zip's directory, as far as it lies in its last part."""
    try:
        with zipfile.ZipFile(io.BytesIO(end)) as archive:
            return [name.lower().replace("\\", "/").lstrip("/") for name in archive.namelist()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError):
        return []


def _in_ole(seen: bytes, ending: str) -> str:
    """Return what an OLE file holds by the names of its streams; the file's own name where several are there."""
    found = [kind for stream, kind in IN_OLE if stream.encode("utf-16-le") in seen]
    promised = OLE_ENDINGS.get(ending, "")
    if found and found[0] in (MSG, ENCRYPTED_OFFICE):
        return found[0]
    if promised in found or (promised and not found and len(seen) > 1 << 20):
        return promised
    return found[0] if found else OLE


def _is_text(head: bytes) -> bool:
    if head.startswith(BOMS):
        return True
    sample = head[:65536]
    if sample.count(0) > len(sample) // 5:
        from apps.knowledge.parsers.encodings import decode

        text, encoding = decode(sample[: len(sample) // 4 * 4])
        return encoding.startswith("utf-") and text.count("\x00") + text.count("\ufffd") <= len(text) // 50
    return len(sample) - len(sample.translate(None, CONTROL)) <= 2 + len(sample) // 50
