"""Outlook messages (.msg): subject, people, date, body and attachments ([MS-OXMSG])."""

import datetime
import io
import struct
from collections.abc import Iterator
from typing import BinaryIO

import olefile

from apps.common.text import legible
from apps.knowledge.parsers.embedded import one_budget, read_inside, unread_inside
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.html import fragment_to_markdown
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

SUBJECT, SENDER, SENDER_ADDRESS, TO, CC, BODY, HTML, RTF = (
    *("0037", "0C1A", "0C1F", "0E04", "0E03", "1000", "1013", "1009"),
)
LONG_NAME, SHORT_NAME, DATA = "3707", "3704", "3701"
SENT, RECEIVED = 0x00390040, 0x0E060040
DEEPEST = 5
EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)


@one_budget()
def parse_msg(file: BinaryIO) -> Parsed:
    """Read a message. Raises ParseFailure: broken_file, empty_file."""
    try:
        ole = olefile.OleFileIO(io.BytesIO(file.read()))
    except (OSError, ValueError, struct.error) as error:
        raise ParseFailure("broken_file", reason="no message in it") from error
    message = _Message(ole, [], 1)
    markdown = tidy(legible("\n\n".join(filter(None, message.blocks())))).strip()
    if not markdown:
        raise ParseFailure("empty_file")
    subject = " ".join(message.text(SUBJECT).split())
    title = {"title": legible(subject)[:300]} if subject else {}
    return Parsed(markdown, metadata={**title, **unread_inside()})


class _Message:
    """A message, or one inside another: the streams below a path."""

    def __init__(self, ole: olefile.OleFileIO, path: list[str], depth: int) -> None:
        self.ole, self.path, self.depth = ole, path, depth
        entries = [entry for entry in ole.listdir(streams=True, storages=True) if entry[: len(path)] == path]
        self.names = {entry[len(path)] for entry in entries if len(entry) > len(path)}
        self.encoding = self._encoding()

    def stream(self, name: str) -> bytes:
        """Return a stream's bytes, b"" where there is none."""
        if name not in self.names or not self.ole.exists([*self.path, name]):
            return b""
        return bytes(self.ole.openstream([*self.path, name]).read())

    def _encoding(self) -> str:
        """Return the code page of texts that are no Unicode, seen in all of them together; what it says of it lies."""
        joined = b"\n".join(self.stream(name) for name in sorted(self.names) if name.endswith("001E"))
        return decode(joined)[1] if joined.strip(b"\n") else "utf-8"

    def text(self, key: str) -> str:
        """Return a text property, "" where there is none."""
        wide = self.stream(f"__substg1.0_{key}001F")
        if wide:
            return wide.decode("utf-16-le", "replace").rstrip("\x00")
        return self.stream(f"__substg1.0_{key}001E").decode(self.encoding, "replace").rstrip("\x00")

    def blocks(self) -> Iterator[str]:
        """Yield the message's blocks."""
        subject = " ".join(self.text(SUBJECT).split())
        yield f"{'#' * min(self.depth, 6)} {subject}" if subject else ""
        sender = " ".join(filter(None, [self.text(SENDER), self.text(SENDER_ADDRESS)]))
        about = (("From", sender), ("To", self.text(TO)), ("Cc", self.text(CC)), ("Date", self.date()))
        yield "\n".join(f"{name}: {' '.join(text.split())}" for name, text in about if text.strip())
        yield self.body()
        for name in sorted(self.names):
            if name.startswith("__attach_version1.0_") and self.depth < DEEPEST:
                yield from self.attachment(name)

    def body(self) -> str:
        """Return the plain body, else the HTML one."""
        text = self.text(BODY)
        if text.strip():
            return text
        html = self.stream(f"__substg1.0_{HTML}0102") or self.text(HTML).encode()
        return fragment_to_markdown(html) if html else ""

    def date(self) -> str:
        """Return when it was sent, else received; "" where unknown."""
        properties = self.stream("__properties_version1.0")
        found = {}
        for at in range(0, len(properties) - 15, 8):
            tag, _, ticks = struct.unpack_from("<IIQ", properties, at)
            if tag in (SENT, RECEIVED) and 0 < ticks < 1 << 60:
                found[tag] = EPOCH + datetime.timedelta(microseconds=ticks // 10)
        when = found.get(SENT) or found.get(RECEIVED)
        return when.strftime("%Y-%m-%d %H:%M UTC") if when else ""

    def attachment(self, name: str) -> Iterator[str]:
        """Yield an attachment under its name: a message inside, or a file that is read by its own parser."""
        inside = _Message(self.ole, [*self.path, name], self.depth + 1)
        title = " ".join((inside.text(LONG_NAME) or inside.text(SHORT_NAME)).split())
        storage = f"__substg1.0_{DATA}000D"
        if storage in inside.names:
            yield from _Message(self.ole, [*self.path, name, storage], self.depth + 1).blocks()
            return
        data = inside.stream(f"__substg1.0_{DATA}0102")
        text, _ = read_inside(data, title) if data else ("", "")
        if title:
            yield f"{'#' * min(self.depth + 1, 6)} {title}"
        yield text
