"""Calendars (.ics): each appointment under its title, with when, where, who and what about."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

FOLDED = re.compile(r"\r?\n[ \t]")
LINE = re.compile(r"([A-Za-z-]{1,40})((?:;[^:\r\n]{0,500})?):(.*)")
ESCAPED = re.compile(r"\\([nN,;\\])")
WHEN = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?$")
ENTRIES = ("VEVENT", "VTODO", "VJOURNAL")
FACTS = ("DTSTART", "DTEND", "DUE", "LOCATION", "ORGANIZER", "ATTENDEE", "STATUS", "URL")


def parse_calendar(file: BinaryIO) -> Parsed:
    """Read a calendar. Raises ParseFailure(empty_file) where no appointment is in it."""
    text, encoding = decode(file.read())
    lines = list(_lines(FOLDED.sub("", text)))
    title = next((value for name, value in lines if name == "X-WR-CALNAME"), "")
    blocks = list(_entries(lines))
    if not blocks:
        raise ParseFailure("empty_file")
    markdown = tidy(legible("\n\n".join([f"# {title}"] * bool(title) + blocks)))
    return Parsed(
        markdown, metadata={"encoding": encoding, "entries": len(blocks), **({"title": title} if title else {})}
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each property's name and value, unescaped."""
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            value = ESCAPED.sub(lambda sign: "\n" if sign.group(1) in "nN" else sign.group(1), match.group(3))
            yield match.group(1).upper(), value.strip()


def _entries(lines: list[tuple[str, str]]) -> Iterator[str]:
    """Yield each appointment's Markdown."""
    found: list[tuple[str, str]] | None = None
    for name, value in lines:
        if name == "BEGIN" and value.upper() in ENTRIES:
            found = []
        elif name == "END" and value.upper() in ENTRIES and found is not None:
            yield _entry(found)
            found = None
        elif found is not None:
            found.append((name, value))


def _entry(found: list[tuple[str, str]]) -> str:
    said = dict(reversed(found))  # of a name that stands twice the first, as below
    facts = [f"- {name.capitalize()}: {_plain(value)}" for name, value in found if name in FACTS and value]
    parts = [f"## {said.get('SUMMARY') or 'Entry'}", "\n".join(facts), said.get("DESCRIPTION", "")]
    return "\n\n".join(filter(None, parts))


def _plain(value: str) -> str:
    """Return a value as people write it: dates with dashes, addresses without the scheme."""
    when = WHEN.match(value)
    if when:
        year, month, day, hour, minute, zone = when.groups()
        return f"{year}-{month}-{day}" + (f" {hour}:{minute}{' UTC' if zone else ''}" if hour else "")
    return re.sub(r"^mailto:", "", value, flags=re.I)
