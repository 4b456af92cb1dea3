"""Have a file read in the sandbox, and learn in one word how it went.

Each process that reads files keeps one sandbox process, started with the first file and gone when it
is. It reads one file at a time; a second thread waits.
"""

import codecs
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import IO, Any

from apps.common.text import storable
from apps.knowledge.errors import FAILURES, BrokenFile, DocumentFailure, ParseMemory, ParseTimeout, SandboxBusy, failure
from apps.knowledge.parsers import TEXT_TYPES
from apps.knowledge.parsers.illustrations import LARGEST, PICTURE_NAME
from apps.knowledge.parsers.parsed import Parsed, Picture
from apps.knowledge.sandbox.limits import A_PAGE, Limits

CHECKOUT = Path(__file__).resolve().parents[3]
LOOK_EVERY_S = 0.25
BLOCK_BYTES = 1 << 20
HELD_BYTES = 16 << 20  # of text; a longer one stays on disk
LONGEST_PASSWORD = 255
LONGEST_MARKED = 1_000  # characters highlighted on a page
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # none of them would survive a fork


class _Channel:
    """The sandbox process of this process."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.socket: socket.socket | None = None
        self.owner = 0

    def connected(self) -> socket.socket:
        """Return the socket to the sandbox, starting it if it is not there or belongs to who forked us."""
        if self.socket is None or self.owner != os.getpid() or self.process is None or self.process.poll() is not None:
            self.close()
            ours, theirs = socket.socketpair()
            environment = {"PYTHONPATH": str(CHECKOUT), "PATH": os.defpath, "LANG": "C.UTF-8", **ONE_THREAD}
            self.process = subprocess.Popen(
                [sys.executable, "-m", "apps.knowledge.sandbox.server"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # what a library complains of may quote the file
                cwd=tempfile.gettempdir(),
                env=environment,
            )
            theirs.close()
            self.socket, self.owner = ours, os.getpid()
        return self.socket

    def close(self) -> None:
        """Give the sandbox up; it ends by itself when the socket closes."""
        found, self.socket = self.socket, None
        if found:
            found.close()
        process, self.process = self.process, None
        if process and self.owner == os.getpid():
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


_channel = _Channel()


def close() -> None:
    """End this process's sandbox; the next file starts another."""
    with _channel.lock:
        _channel.close()


def read(
    file: IO[bytes],
    content_type: str,
    *,
    password: str = "",
    page: int = 0,
    marked: str | None = None,
    check: Callable[[], None] = lambda: None,
    limits: Limits | None = None,
    wait_s: float = -1,
) -> Parsed:
    """Read a file in the sandbox; or recognise the text of one ``page``, from 1, of a PDF or picture.

    With ``marked`` the page of a PDF is drawn instead, those words highlighted on it.

    ``check`` is called four times a second while it is read; what it raises ends the reading at once.
    ``wait_s`` bounds the wait for the files of others; by default it lasts as long as they do.

    Raises:
        SandboxBusy: they took longer.
        DocumentFailure: of the kind that the parser named, or parse_timeout, parse_memory,
            broken_file for what ended it.
    """
    limits = limits or (A_PAGE if page else Limits())
    request = {
        "content_type": content_type,
        "password": password[:LONGEST_PASSWORD],
        "page": page,
        "marked": None if marked is None else marked[:LONGEST_MARKED],
        "shared": content_type in TEXT_TYPES,
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "output_bytes": limits.output_bytes,
    }
    if not _channel.lock.acquire(timeout=wait_s):
        raise SandboxBusy
    try:
        for _ in range(2):
            try:
                return _read_once(file, request, check, limits)
            except ConnectionError:
                continue  # the sandbox itself was killed, not by its own limits: once more in a new one
        raise BrokenFile(reason="it ended the sandbox twice")
    finally:
        _channel.lock.release()


def _read_once(file: IO[bytes], request: dict[str, Any], check: Callable[[], None], limits: Limits) -> Parsed:
    with _on_disk(file) as source, tempfile.TemporaryFile() as result:
        try:
            answer = _exchange(request, [source, result.fileno()], check)
        except BaseException:
            _channel.close()  # whatever it is at, its answer belongs to nobody
            raise
        if answer["exit"]:
            raise _ended(answer["exit"], answer["peak_bytes"], limits)
        result.seek(0)
        return _understood(result)


def _exchange(request: dict[str, Any], descriptors: list[int], check: Callable[[], None]) -> dict[str, int]:
    channel = _channel.connected()
    channel.settimeout(LOOK_EVERY_S)
    socket.send_fds(channel, [json.dumps(request).encode()], descriptors)
    answer = b""
    while not answer.endswith(b"\n"):
        try:
            part = channel.recv(4096)
        except TimeoutError:
            check()
            continue
        if not part:
            raise ConnectionResetError("the sandbox ended")
        answer += part
    found: dict[str, int] = json.loads(answer)
    return found


@contextlib.contextmanager
def _on_disk(file: IO[bytes]) -> Iterator[int]:
    """Yield a descriptor of the file that has a position of its own, copying what is not on disk."""
    try:
        path = f"/dev/fd/{file.fileno()}"
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (AttributeError, OSError):
        with tempfile.TemporaryFile() as copy:
            file.seek(0)
            while block := file.read(1 << 20):
                copy.write(block)
            copy.seek(0)
            yield copy.fileno()
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _ended(status: int, peak_bytes: int, limits: Limits) -> DocumentFailure:
    """Say what a reader died of, by its signal and the memory it had."""
    if -status in (signal.SIGALRM, signal.SIGXCPU):
        return ParseTimeout()
    if peak_bytes > limits.memory_bytes // 3 or -status in (signal.SIGKILL, signal.SIGABRT, signal.SIGTRAP):
        return ParseMemory()  # libraries abort when the system refuses them memory
    return BrokenFile(reason=f"ended with {status}")


def _understood(outcome: IO[bytes]) -> Parsed:
    """Check the shape of what the reader wrote: it is as trustworthy as the file."""
    try:
        found = json.loads(outcome.readline())
        if "code" in found:
            known = found["code"] in FAILURES and isinstance(found["details"], dict)
            raise failure(found["code"], found["details"]) if known else BrokenFile()
        pages, metadata = found["pages"], found["metadata"]
        marks = [(int(number), int(start)) for number, start in pages]
        unread = [int(number) for number in found["unread"]]
        size, whole = int(found["markdown"]), None
        if size > HELD_BYTES and not found["pictures"] and not unread:
            whole, markdown = _kept(outcome, size)
        else:
            markdown = _text(outcome, size)
        pictures = list(_pictures(found["pictures"], outcome))
        if not isinstance(metadata, dict):
            raise BrokenFile(reason="no facts")
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenFile(reason="the reader's answer makes no sense") from error
    facts = {storable(str(name)): _fact(value) for name, value in metadata.items()}
    return Parsed(storable(markdown), marks, facts, unread, pictures, whole)


def _kept(outcome: IO[bytes], size: int) -> tuple[IO[bytes], str]:
    """Return the next ``size`` bytes as a file of text that can be stored, and its beginning."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    beginning = ""
    whole = tempfile.TemporaryFile()  # noqa: SIM115 (whoever gets it closes it)
    while size > 0 and (block := outcome.read(min(size, BLOCK_BYTES))):
        size -= len(block)
        text = storable(decoder.decode(block, final=size == 0))
        beginning = beginning or text
        whole.write(text.encode())
    if size:
        raise ValueError("cut off")
    whole.seek(0)
    return whole, beginning


def _text(outcome: IO[bytes], size: int) -> str:
    """Return the next ``size`` bytes as text. Grown in place, so that a large one is held once and not three times."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    while size > 0 and (block := outcome.read(min(size, BLOCK_BYTES))):
        size -= len(block)
        text += decoder.decode(block, final=size == 0)
    if size:
        raise ValueError("cut off")
    return text


def _pictures(listed: list[Any], outcome: IO[bytes]) -> Iterator[Picture]:
    for name, size, width, height, page in listed:
        data = outcome.read(int(size)) if 0 < int(size) <= LARGEST else b""
        if not PICTURE_NAME.fullmatch(name) or len(data) != size:
            raise ValueError(name)
        media_type = f"image/{name.rpartition('.')[2]}"
        yield Picture(name, media_type, data, int(width), int(height), int(page) if page else None)


def _fact(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else storable(str(value))[:2000]
