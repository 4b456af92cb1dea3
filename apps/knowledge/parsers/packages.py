"""Zip packages of XML, opened with suspicion: bytes are counted as they inflate, not as declared."""

import zipfile
import zlib
from typing import Any, BinaryIO

from lxml import etree

from apps.knowledge.parsers.illustrations import LARGEST, MOST_BYTES, leave_out, wanted
from apps.knowledge.parsers.parsed import ParseFailure

MOST_ENTRIES = 5_000
LARGEST_ENTRY = 96 << 20
LARGEST_TOTAL = 256 << 20
RATIO, RATIO_FROM = 200, 16 << 20
BLOCK = 1 << 18
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Package:
    """An office file's parts.

    Raises on opening:
        ParseFailure: password_required, broken_file, or suspicious_file for too many entries.
    """

    def __init__(self, file: BinaryIO) -> None:
        if file.read(8) == OLE:
            file.seek(0)
            encrypted = "EncryptedPackage".encode("utf-16-le") in file.read()
            raise ParseFailure("password_required" if encrypted else "broken_file")
        file.seek(0)
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise ParseFailure("broken_file", reason="no zip file") from error
        if len(self._zip.namelist()) > MOST_ENTRIES:
            raise ParseFailure("suspicious_file", reason="entries")
        self._names = {name.lstrip("/").lower(): name for name in self._zip.namelist()}
        self._total = self._pictures = 0  # bytes that were read

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of parts that begin with ``prefix``, in lower case, sorted."""
        return sorted(name for name in self._names if name.startswith(prefix))

    def entries(self) -> list[zipfile.ZipInfo]:
        """Return what the directory lists, in its order."""
        return self._zip.infolist()

    def read(self, name: str) -> bytes | None:
        """Return a part, None if there is none.

        Raises:
            ParseFailure: suspicious_file where it inflates too far; password_required; broken_file.
        """
        actual = self._names.get(name.lstrip("/").lower())
        return None if actual is None else self.inflated(self._zip.getinfo(actual))

    def inflated(self, info: zipfile.ZipInfo) -> bytes:
        """Return what is in an entry. Raises as ``read`` does."""
        if info.flag_bits & 1:
            raise ParseFailure("password_required")
        blocks, size = [], 0
        try:
            with self._zip.open(info) as part:
                while block := part.read(BLOCK):
                    size += len(block)
                    self._total += len(block)
                    too_dense = size > RATIO_FROM and size > RATIO * max(info.compress_size, 1)
                    if size > LARGEST_ENTRY or self._total > LARGEST_TOTAL or too_dense:
                        raise ParseFailure("suspicious_file", reason="inflates")
                    blocks.append(block)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, zlib.error) as error:
            raise ParseFailure("broken_file", reason="a part is damaged") from error
        return b"".join(blocks)

    def picture(self, name: str) -> bytes | None:
        """Return a part that is a picture; None where there is none, or it is too large to be kept."""
        actual = self._names.get(name.lstrip("/").lower())
        if actual is None or not wanted():
            return None
        info = self._zip.getinfo(actual)
        if info.flag_bits & 1 or info.file_size > LARGEST or self._pictures > MOST_BYTES:
            leave_out()
            return None
        try:
            with self._zip.open(info) as part:
                data: bytes | None = part.read(LARGEST + 1)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, zlib.error):
            data = None
        if data is None or len(data) > LARGEST:
            leave_out()
            return None
        self._pictures += len(data)
        return data

    def xml(self, name: str) -> Any | None:
        """Return the root element of an XML part, None if there is none. See ``parse_xml``."""
        data = self.read(name)
        return None if data is None else parse_xml(data)

    def links(self, part: str) -> dict[str, str]:
        """Return what a part links to outside the package: id -> address."""
        return {
            relation.get("Id", ""): relation.get("Target", "")
            for relation in self._relations(part)
            if relation.get("TargetMode") == "External" and relation.get("Type", "").endswith("/hyperlink")
        }

    def _relations(self, part: str) -> list[Any]:
        folder, _, name = part.rpartition("/")
        root = self.xml(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
        return [relation for relation in (() if root is None else root) if isinstance(relation.tag, str)]

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return a part's relations: id -> (kind, the last word of its type; target inside the package)."""
        folder = part.rpartition("/")[0]
        found: dict[str, tuple[str, str]] = {}
        for relation in self._relations(part):
            if relation.get("TargetMode") == "External":
                continue
            target = relation.get("Target", "")
            path = target.lstrip("/") if target.startswith("/") or not folder else f"{folder}/{target}"
            while "/../" in path:
                before, _, after = path.partition("/../")
                path = f"{before.rpartition('/')[0]}/{after}".lstrip("/")
            found[relation.get("Id", "")] = (relation.get("Type", "").rpartition("/")[2], path)
        return found


def parse_xml(data: bytes) -> Any:
    """Return the root element. Entities, DTDs and the network stay untouched; depth and size are libxml2's limits.

    Raises:
        ParseFailure: broken_file.
    """
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from error
        raise ParseFailure("broken_file", reason="XML") from error
    except ValueError as error:
        raise ParseFailure("broken_file", reason="XML") from error
    if root is None:
        raise ParseFailure("broken_file", reason="XML")
    return root
