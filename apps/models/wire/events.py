"""Server-sent events, from bytes cut anywhere."""

import re

MAX_EVENT_BYTES = 16 * 2**20
WHOLE = re.compile(rb"data: [^\r\n]*\n\n")  # one event in one line


class EventTooLong(Exception):
    """One event is longer than any honest answer."""


class EventParser:
    """Feed it bytes as they arrive; get the data of each event that is complete.

    As the standard says: lines end in LF, CR or CRLF, ``data`` lines of one event are joined by LF,
    comments and other fields are passed over, a BOM at the start is dropped. Beyond it: a bare
    line of JSON counts as an event, since some gateways send their errors so, and ``finish`` also
    gives a last event without its empty line. Cutting the bytes elsewhere changes nothing.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
    """

    __slots__ = ("_data", "_rest", "_started")

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more bytes; return the events that they complete. Raises EventTooLong."""
        if self._started and not self._rest and not self._data and WHOLE.fullmatch(chunk):
            return [chunk[6:-2]]  # as nearly all chunks of a stream are
        buffer = self._rest + chunk if self._rest else chunk
        if not self._started:
            if len(buffer) < 3 and b"\xef\xbb\xbf".startswith(buffer):
                self._rest = buffer
                return []
            buffer = buffer.removeprefix(b"\xef\xbb\xbf")
            self._started = True
        held = b""
        if b"\r" in buffer:
            if buffer.endswith(b"\r"):  # perhaps the first half of CRLF
                buffer, held = buffer[:-1], b"\r"
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = buffer.split(b"\n")
        self._rest = rest + held
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLong
        return self._take(lines)

    def finish(self) -> list[bytes]:
        """The stream is over: return what is still pending."""
        rest, self._rest = self._rest.removesuffix(b"\r"), b""
        return self._take([rest, b""])

    def _take(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if self._data:
                    events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                    self._data = []
            elif line.startswith(b"{") and not self._data:
                events.append(line)
        return events
