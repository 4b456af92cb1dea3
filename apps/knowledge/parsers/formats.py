"""Formats that need nothing but a row here: how a file of theirs is known, and who reads it.

The formats of office programs, whose files are told apart by what is inside, stand in ``content_types`` and
``PARSERS`` by themselves. See docs/recipes/add-a-parser.md.
"""

from typing import NamedTuple


class Format(NamedTuple):
    """One format.

    Attributes:
        content_type: what documents of it are stored as.
        parser: dotted path of a function from an open file to ``Parsed``.
        endings: of its files' names, in lower case; they decide between kinds of text.
        magic: how its files begin, where that tells them from all others.
        text: whether a file is text to the last byte, which one process may read after another.
    """

    content_type: str
    parser: str
    endings: tuple[str, ...]
    magic: tuple[bytes, ...] = ()
    text: bool = False


FORMATS = (
    Format(
        content_type="text/calendar",
        parser="apps.knowledge.parsers.calendars.parse_calendar",
        endings=(".ics", ".ical", ".ifb"),
        magic=(b"BEGIN:VCALENDAR",),
        text=True,
    ),
)
