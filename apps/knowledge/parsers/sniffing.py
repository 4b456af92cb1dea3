"""Which parser an uploaded file goes to, and which word it is refused with.

Only the first and the last part of the file are looked at, and nothing is unpacked, so this is safe
in the web process: a wrong file is refused at once, a hostile one is left to the sandbox.
"""

from pathlib import PurePath
from typing import IO, Any

from apps.knowledge.errors import TypeMismatch, UnsupportedFileType
from apps.knowledge.parsers import PARSERS
from apps.knowledge.parsers.content_types import PICTURES, PROMISES, RECORDINGS, sniff

EDGE_BYTES = 1 << 20
WITHOUT_TEXT = frozenset({*PICTURES, *RECORDINGS})


def sniff_file(file: IO[Any], name: str) -> str:
    """Return the content type of a file that can be read; leaves the position anywhere.

    Raises:
        UnsupportedFileType: no parser is registered for what it is.
        TypeMismatch: so, or a picture or recording, and its name promises text that could be read.
    """
    file.seek(0)
    head = file.read(EDGE_BYTES)
    size = file.seek(0, 2)
    tail = b""
    if size > len(head):
        file.seek(max(0, size - EDGE_BYTES))
        tail = file.read(EDGE_BYTES)
    found = sniff(head, tail, name)
    ending = PurePath(name).suffix.lower()
    promised = PROMISES.get(ending, found)
    if found in PARSERS and (found not in WITHOUT_TEXT or promised in WITHOUT_TEXT):
        return found
    if promised in PARSERS:
        raise TypeMismatch(extension=ending, content_type=found)
    raise UnsupportedFileType(content_type=found)
