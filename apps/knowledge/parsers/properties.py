"""What a file says of itself: title, author, dates, language. The same names whatever the format.

``title``, ``author``, ``language`` are texts, ``created`` and ``modified`` ISO dates, with a time where one is given.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from apps.common.text import legible
from apps.knowledge.parsers.docx_styles import local
from apps.knowledge.parsers.parsed import ParseFailure

if TYPE_CHECKING:
    from apps.knowledge.parsers.packages import Package  # brings lxml, which only a reader needs

LONGEST = 300
SAMPLE = 20_000  # characters that tell the language of a text
SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
)
ENGLISH = re.compile(r"\b(?:the|and|of|to|in|is|that|for|with|are|this|was)\b", re.I)
WORD = re.compile(r"[A-Za-z]+")
DATES = frozenset({"created", "modified"})
PDF_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-Z])(\d\d)?'?(\d\d)?)?")
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?")
LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")
CORE = {"title": "title", "creator": "author", "created": "created", "modified": "modified", "language": "language"}
OPEN_DOCUMENT = {
    "title": "title",
    "initial-creator": "author",
    "creator": "author",
    "creation-date": "created",
    "date": "modified",
    "language": "language",
}
PDF = {"Title": "title", "Author": "author", "CreationDate": "created", "ModDate": "modified"}


def facts(found: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return what is said, clean and bounded; of two values for one name the first that makes sense."""
    kept: dict[str, str] = {}
    for name, value in found:
        text = " ".join(legible(value or "").split())[:LONGEST]
        if name in DATES:
            text = _date(text)
        elif name == "language" and not LANGUAGE.fullmatch(text):
            continue
        if text and name not in kept:
            kept[name] = text
    return kept


def language_of(text: str) -> str:
    """Return "zh", "ja", "ko" or "en" where a text is clearly in it, "" else."""
    sample = text[:SAMPLE]
    letters = sum(map(str.isalpha, sample))
    words = len(WORD.findall(sample))
    for language, script in SCRIPTS:
        if letters and len(script.findall(sample)) > letters * (0.05 if language == "ja" else 0.2):
            return language
    return "en" if words >= 20 and len(ENGLISH.findall(sample)) > words * 0.12 else ""


def core_properties(package: "Package") -> dict[str, str]:
    """Return what an Office file says of itself."""
    return _elements(package, "docProps/core.xml", CORE)


def open_document_properties(package: "Package") -> dict[str, str]:
    """Return what an OpenDocument file says of itself."""
    return _elements(package, "meta.xml", OPEN_DOCUMENT)


def pdf_properties(document: Any) -> dict[str, str]:
    """Return what a PDF says of itself."""
    return facts((name, document.get_metadata_value(key)) for key, name in PDF.items())


def _elements(package: "Package", part: str, names: dict[str, str]) -> dict[str, str]:
    try:
        root = package.xml(part)
    except ParseFailure:  # what stands in the document can still be read
        return {}
    elements = [] if root is None else [one for one in root.iter() if isinstance(one.tag, str)]
    found = {local(one): one.text for one in elements if one.text}
    return facts((name, found.get(key)) for key, name in names.items())


def _date(text: str) -> str:
    iso = ISO_DATE.match(text)
    if iso:
        return iso.group()
    written = PDF_DATE.match(text)
    if written is None:
        return ""
    year, month, day, hour, minute, second, sign, hours, minutes = written.groups()
    date = f"{year}-{month or '01'}-{day or '01'}"
    if hour is None:
        return date
    zone = "Z" if sign == "Z" else f"{sign}{hours}:{minutes or '00'}" if sign and hours else ""
    return f"{date}T{hour}:{minute or '00'}:{second or '00'}{zone}"
