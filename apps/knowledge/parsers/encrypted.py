"""Office files under a password: opened with it, or refused with the word for that."""

import io
from typing import BinaryIO

from apps.knowledge.parsers.content_types import ENCRYPTED_OFFICE, sniff
from apps.knowledge.parsers.parsed import Parsed, ParseFailure

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def parse_encrypted_office(file: BinaryIO, *, password: str = "") -> Parsed:
    """Read what is inside an encrypted package. Raises ParseFailure(password_required) without the right password."""
    from apps.knowledge.parsers import PARSERS

    if not password:
        raise ParseFailure("password_required")
    data = unlocked(file.read(), password)
    kind = sniff(data, b"", "")
    if kind == ENCRYPTED_OFFICE or kind not in PARSERS:
        raise ParseFailure("broken_file", reason="nothing readable inside")
    return PARSERS.get(kind)(io.BytesIO(data))


def unlocked(data: bytes, password: str) -> bytes:
    """Return an OLE file's content in the clear; the same bytes where it is not encrypted.

    Raises:
        ParseFailure: password_required without the right password; broken_file.
    """
    import msoffcrypto
    from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError

    try:
        office = msoffcrypto.OfficeFile(io.BytesIO(data))
        if not office.is_encrypted():
            return data
        if not password:
            raise ParseFailure("password_required")
        office.load_key(password=password)
        out = io.BytesIO()
        office.decrypt(out)
    except (InvalidKeyError, DecryptionError) as error:
        raise ParseFailure("password_required", reason="wrong password") from error
    except FileFormatError:
        return data  # not one of those it knows: the format's own reader decides
    except (MemoryError, ParseFailure):
        raise
    except Exception as error:
        raise ParseFailure("broken_file", reason="its encryption") from error
    return out.getvalue()
