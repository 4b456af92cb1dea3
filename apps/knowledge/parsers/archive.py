"""Zip archives: each file inside under its name, read by its own parser, everything counted as it inflates."""

import zipfile
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.embedded import one_budget, read_inside, unread_inside
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.packages import Package
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

NOISE = ("__macosx/", ".ds_store", "thumbs.db", "desktop.ini")
UTF8_NAME = 0x800


@one_budget()
def parse_zip(file: BinaryIO) -> Parsed:
    """Read the files of an archive; what cannot be read is named, with the reason.

    Raises:
        ParseFailure: password_required where all is locked, broken_file, suspicious_file, empty_file.
    """
    package = Package(file)
    blocks, unread, locked = [], [], False
    for info in package.entries():
        name = _name(info)
        if info.is_dir() or name.lower().startswith(NOISE[0]) or name.lower().rpartition("/")[2] in NOISE:
            continue
        try:
            data = package.inflated(info)
        except ParseFailure as failure:
            if failure.code == "suspicious_file":
                raise
            locked = locked or failure.code == "password_required"
            unread.append(name)
            continue
        text, reason = read_inside(data, name)
        blocks.append(f"# {name}\n\n{text or f'({reason})'}")
    if not blocks:
        raise ParseFailure("password_required" if locked else "broken_file" if unread else "empty_file")
    return Parsed(tidy(legible("\n\n".join(blocks))), metadata=unread_inside(*unread))


def _name(info: zipfile.ZipInfo) -> str:
    """Return an entry's name; one without the mark for UTF-8 is in whatever its author's system used."""
    if info.flag_bits & UTF8_NAME:
        return info.filename
    try:
        return decode(info.filename.encode("cp437"))[0]
    except UnicodeEncodeError:
        return info.filename
