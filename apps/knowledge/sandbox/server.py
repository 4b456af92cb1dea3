"""The sandbox process: ``python -m apps.knowledge.sandbox.server``, talking over file descriptor 0.

It holds no secrets (an empty environment, no database) and has left the network before the first
file arrives. For each request it gets one line of JSON and two file descriptors: the file, open for
reading, and where the result goes. A binary file is read in a child forked for it alone, which the
kernel ends when its time, CPU or memory is up. Text files go to one child that lives on. Parsers
are imported before the fork, so a file costs milliseconds.

Answer: one line of JSON: {"exit": 0 or a negative signal number, "peak_bytes"}. The result is a line of JSON
too, then the bytes of the Markdown and of pictures, never a pickle: the reading child is not trusted.
"""

import inspect
import json
import mimetypes
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

from apps.knowledge.parsers import PARSERS
from apps.knowledge.parsers.illustrations import collected
from apps.knowledge.parsers.parsed import Parsed, ParseFailure
from apps.knowledge.sandbox import isolation

REQUEST_BYTES = 8192
FILES_A_READER = 500  # then it is replaced, whatever it has piled up


class Reader:
    """The child that reads many text files, one after the other."""

    def __init__(self) -> None:
        self.pid = 0
        self.channel: socket.socket | None = None
        self.left = 0

    def read(self, request: dict[str, Any], descriptors: list[int], control: socket.socket) -> tuple[int, int]:
        """Have one file read; return the exit status and peak memory if it ended, else (0, 0)."""
        if self.left <= 0:
            self.stop()
            self.start(request)
        self.left -= 1
        assert self.channel is not None
        socket.send_fds(self.channel, [json.dumps(request).encode()], descriptors)
        ended = _until_readable(self.channel, control, self.pid, request["wall_s"])
        if ended or not self.channel.recv(1):
            status = self.stop(kill=ended)
            return status if status[0] else (-signal.SIGKILL, status[1])
        return 0, 0

    def start(self, request: dict[str, Any]) -> None:
        """Fork the child."""
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            ours.close()
            _confine(request, cpu=False)
            _serve_texts(theirs)
        theirs.close()
        self.channel, self.left = ours, FILES_A_READER

    def stop(self, *, kill: bool = True) -> tuple[int, int]:
        """End the child; return its exit status and peak memory."""
        self.left = 0
        if self.channel is None:
            return 0, 0
        self.channel.close()
        self.channel = None
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        return _reaped(self.pid)


def main() -> None:
    """Serve requests until the other end closes."""
    isolation.end_with_parent()
    control = socket.socket(fileno=0)
    isolation.leave_network()
    mimetypes.init()  # both read a file of the system's, which the readers may not
    time.tzset()
    reader = Reader()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES, 2)
        if not message:
            reader.stop()
            return
        request = json.loads(message)
        try:
            _prepare(request)
            if request["shared"]:
                status, peak = reader.read(request, descriptors, control)
            else:
                status, peak = _read_alone(request, descriptors, control)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        control.sendall(json.dumps({"exit": status, "peak_bytes": peak}).encode() + b"\n")


def _read_alone(request: dict[str, Any], descriptors: list[int], control: socket.socket) -> tuple[int, int]:
    """Read one file in a child of its own."""
    alive, held_by_child = os.pipe()  # the read end becomes readable when the child is gone
    pid = os.fork()
    if not pid:
        os.close(alive)
        control.close()
        _confine(request, cpu=True)
        signal.setitimer(signal.ITIMER_REAL, request["wall_s"])
        _read_one(request, descriptors)
        os._exit(0)
    os.close(held_by_child)
    try:
        if _until_readable(alive, control, pid, request["wall_s"]):
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(alive)
    return _reaped(pid)


def _confine(request: dict[str, Any], *, cpu: bool) -> None:
    isolation.end_with_parent()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.setsid()
    isolation.limit(
        memory_bytes=request["memory_bytes"],
        cpu_s=request["cpu_s"] if cpu else 0,
        output_bytes=request["output_bytes"],
    )
    isolation.forbid_files(isolation.own_code())
    isolation.forbid_system_calls()
    isolation.forbid_in_python()


def _serve_texts(channel: socket.socket) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, REQUEST_BYTES, 2)
        if not message:
            os._exit(0)
        request = json.loads(message)
        signal.setitimer(signal.ITIMER_REAL, request["wall_s"])  # its default action ends the process
        _read_one(request, descriptors)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.sendall(b".")


def _read_one(request: dict[str, Any], descriptors: list[int]) -> None:
    """Read the file and write how it went."""
    with os.fdopen(os.dup(descriptors[0]), "rb") as file, os.fdopen(os.dup(descriptors[1]), "wb") as out:
        try:
            out.writelines(_outcome(request, file))
            out.flush()
        except MemoryError:
            _replace(out, {"code": "parse_memory", "details": {}})
        except OSError:
            _replace(out, {"code": "suspicious_file", "details": {}})  # more text than the output may hold


def _prepare(request: dict[str, Any]) -> None:
    """Import what reads the file, before the fork."""
    if request["marked"] is not None:
        from PIL import Image

        from apps.knowledge.parsers import pdf_drawing  # noqa: F401 (for the child)

        Image.init()
    elif request["page"]:
        from apps.knowledge.parsers import recognition

        recognition.prepare()
    else:
        PARSERS.get(request["content_type"])


def _read(request: dict[str, Any], file: BinaryIO) -> Parsed:
    content_type, password = request["content_type"], request["password"]
    if request["marked"] is not None:
        from apps.knowledge.parsers.pdf_drawing import draw_page

        return draw_page(file, page=request["page"], marked=request["marked"], password=password)
    if request["page"]:
        from apps.knowledge.parsers.recognition import recognise

        return recognise(file, content_type, page=request["page"], password=password)
    parse = PARSERS.get(content_type)
    if password and "password" in inspect.signature(parse).parameters:
        parse = partial(parse, password=password)
    return parse(file)


def _outcome(request: dict[str, Any], file: BinaryIO) -> Iterator[bytes]:
    """Yield a line of JSON, then what it announces: the Markdown's bytes, then the pictures'."""
    try:
        with collected() as album:
            parsed = _read(request, file)
        pictures = [*album.pictures.values(), *parsed.pictures]
        metadata = {**parsed.metadata, "pictures_left_out": album.left_out} if album.left_out else parsed.metadata
        markdown = parsed.markdown.encode("utf-8", "replace")
        found: dict[str, Any] = {
            "markdown": len(markdown),
            "pages": parsed.pages,
            "metadata": metadata,
            "unread": parsed.unread,
            "pictures": [(one.name, len(one.data), one.width, one.height, one.page) for one in pictures],
        }
        yield json.dumps(found).encode() + b"\n"
        yield markdown
        yield from (one.data for one in pictures)
    except ParseFailure as failure:
        yield json.dumps({"code": failure.code, "details": failure.details}).encode()
    except MemoryError:
        yield b'{"code": "parse_memory", "details": {}}'
    except RecursionError:
        yield b'{"code": "broken_file", "details": {"reason": "nested too deeply"}}'
    except Exception as error:  # noqa: BLE001 (the edge: whatever a library throws, the file is at fault)
        yield json.dumps({"code": "broken_file", "details": {"reason": type(error).__name__}}).encode()


def _replace(out: BinaryIO, found: dict[str, Any]) -> None:
    out.seek(0)
    out.truncate()
    out.write(json.dumps(found).encode())
    out.flush()


def _until_readable(channel: socket.socket | int, control: socket.socket, pid: int, wall_s: float) -> bool:
    """Wait for the child. True if it has to be killed: the requester gave up, or the time is long over."""
    deadline = time.monotonic() + wall_s + 5
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([channel, control], [], [], left)
        if control in ready:
            return True  # a request to stop, or the other end is gone: main sees which
        if channel in ready:
            return False
    return True


def _reaped(pid: int) -> tuple[int, int]:
    _, status, usage = os.wait4(pid, 0)
    unit = 1 if sys.platform == "darwin" else 1024
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * unit


if __name__ == "__main__":
    main()
