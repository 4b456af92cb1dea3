"""OpenDocument files under a password (ODF 1.2): each part decrypted, then the package as if it were never locked."""

import base64
import hashlib
import io
import zipfile
import zlib
from typing import Any

from cryptography.hazmat.decrepit.ciphers import algorithms as old
from cryptography.hazmat.decrepit.ciphers import modes as old_modes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from apps.knowledge.parsers.docx_styles import child, value
from apps.knowledge.parsers.packages import LARGEST_ENTRY, LARGEST_TOTAL, Package, parse_xml
from apps.knowledge.parsers.parsed import ParseFailure

MANIFEST = "META-INF/manifest.xml"
CHECKED_BYTES = 1024
MOST_ROUNDS = 2_000_000  # of deriving a key; each costs whoever opens the file


def is_locked(package: Package) -> bool:
    """Whether an OpenDocument file's parts are encrypted."""
    return b"encryption-data" in (package.read(MANIFEST) or b"")


def unlocked(package: Package, password: str) -> io.BytesIO:
    """Return the file with its parts in the clear.

    Raises:
        ParseFailure: password_required without the right password; broken_file for a cipher that nobody here knows.
    """
    if not password:
        raise ParseFailure("password_required")
    manifest = package.read(MANIFEST) or b""
    locks = {
        value(one, "full-path"): lock
        for one in parse_xml(manifest)
        if (lock := child(one, "encryption-data")) is not None
    }
    out, total = io.BytesIO(), 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as clear:
        for info in package.entries():
            data = package.read(info.filename) or b""
            if info.filename in locks:
                data = _clear(data, locks[info.filename], password)
            if info.filename != MANIFEST:
                total += len(data)
                clear.writestr(info.filename, data)
            if total > LARGEST_TOTAL:
                raise ParseFailure("suspicious_file", reason="inflates")
    out.seek(0)
    return out


def _clear(data: bytes, lock: Any, password: str) -> bytes:
    try:
        packed = _decrypted(data, lock, password)
        _check(packed, lock)
        inflater = zlib.decompressobj(-15)
        found = inflater.decompress(packed, LARGEST_ENTRY + 1)
    except (zlib.error, ValueError, TypeError) as error:
        raise ParseFailure("broken_file", reason="its encryption") from error
    if len(found) > LARGEST_ENTRY:
        raise ParseFailure("suspicious_file", reason="inflates")
    return found


def _decrypted(data: bytes, lock: Any, password: str) -> bytes:
    start, derivation, cipher = (
        child(lock, "start-key-generation"),
        child(lock, "key-derivation"),
        child(lock, "algorithm"),
    )
    digest = "sha256" if value(start, "start-key-generation-name").lower().endswith("sha256") else "sha1"
    rounds, size = int(value(derivation, "iteration-count")), int(value(derivation, "key-size") or 16)
    if rounds > MOST_ROUNDS:
        raise ParseFailure("suspicious_file", reason="key derivation")
    begun = hashlib.new(digest, password.encode()).digest()
    key = hashlib.pbkdf2_hmac("sha1", begun, base64.b64decode(value(derivation, "salt")), rounds, size)
    vector = base64.b64decode(value(cipher, "initialisation-vector"))
    name = value(cipher, "algorithm-name").lower()
    if "aes" in name:
        opener = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    elif "blowfish" in name:
        opener = Cipher(old.Blowfish(key), old_modes.CFB(vector)).decryptor()
    else:
        raise ValueError(name)
    return opener.update(data) + opener.finalize()


def _check(packed: bytes, lock: Any) -> None:
    """Raise ParseFailure(password_required) where the password was a wrong one."""
    digest = "sha256" if "sha256" in value(lock, "checksum-type").lower() else "sha1"
    if hashlib.new(digest, packed[:CHECKED_BYTES]).digest() != base64.b64decode(value(lock, "checksum")):
        raise ParseFailure("password_required", reason="wrong password")
