"""Which parser an uploaded file goes to, and which word it is refused with.

Only the first and the last part of the file are looked at, and nothing is unpacked, so this is safe
in the web process: a wrong file is refused at once, a hostile one is left to the sandbox.
"""

from pathlib import PurePath
from typing import IO, Any

from apps.knowledge.errors import TypeMismatch, UnsupportedFileType
from apps.knowledge.parsers import PARSERS
from apps.knowledge.parsers.content_types import PROMISES, sniff

EDGE_BYTES = 1 << 20


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
        file.seek(max(0, size - EDGE_BYTES))
        tail = file.read(EDGE_BYTES)
    found = sniff(head, tail, name)
    if found in PARSERS:
        return found
    ending = PurePath(name).suffix.lower()
    if PROMISES.get(ending, "") in PARSERS:
        raise TypeMismatch(extension=ending, content_type=found)
    raise UnsupportedFileType(content_type=found)
