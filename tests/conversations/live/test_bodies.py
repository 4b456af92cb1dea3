"""Bodies over a real server: nothing beyond the limit is kept, whoever sends it, and the sender is told."""

import asyncio
import errno
import json
import tempfile

import pytest

from apps.common.bodies import FRAME_BYTES


@pytest.fixture
def spooled(monkeypatch):
    """Count what Django keeps of bodies."""
    kept = []
    write = tempfile.SpooledTemporaryFile.write

    def counting(self, data):
        kept.append(len(data))
        return write(self, data)

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "write", counting)
    return kept


async def send(server, head, pieces, *, path="/accounts/login/", accept="application/json"):
    """Send a request piece by piece; return the answer's status, headers and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    start = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\nAccept: {accept}\r\n"
    writer.write((start + head + "\r\n").encode())
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    headers, _, body = answer.partition(b"\r\n\r\n")
    return int(headers.split()[1]), headers.decode(), body


FORM = "Content-Type: multipart/form-data; boundary=x\r\n"
PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'


def chunked(pieces):
    return [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]


async def test_a_stream_without_end_is_cut_at_the_limit(server, settings, spooled):
    settings.MAX_UPLOAD_BYTES = 1 << 20
    pieces = [PART, *[bytes(1 << 18)] * 80]
    status, headers, body = await send(
        server, f"{FORM}Transfer-Encoding: chunked\r\n", chunked(pieces), path="/acme/documents/"
    )
    assert (status, json.loads(body)["code"]) == (413, "request_too_large")
    assert sum(spooled) <= (1 << 20) + FRAME_BYTES
    assert "content-security-policy" in headers.lower()


async def test_only_uploads_may_be_long(server, spooled):
    status, _, body = await send(server, f"{FORM}Transfer-Encoding: chunked\r\n", chunked([bytes(1 << 20)] * 10))
    assert (status, json.loads(body)["code"]) == (413, "request_too_large")
    assert sum(spooled) <= 6 << 20


async def test_what_is_announced_as_too_long_is_not_read_at_all(server, spooled):
    for length in (str(1 << 40), "9" * 5000):
        status, _, body = await send(server, f"{FORM}Content-Length: {length}\r\n", [PART])
        if status != 400:  # the server's own word for a number that is none
            assert (status, json.loads(body)["code"]) == (413, "request_too_large")
    assert sum(spooled) == 0


async def test_a_person_gets_a_page_in_their_language(server):
    status, _, body = await send(server, f"{FORM}Content-Length: {1 << 40}\r\n", [PART], accept="text/html")
    assert status == 413
    assert b"<html" in body
    assert "at most 5 MB" in body.decode()


async def test_a_disk_without_space_is_said_so(server, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "write", full)
    status, _, body = await send(server, f"{FORM}Content-Length: {len(PART)}\r\n", [PART])
    assert (status, json.loads(body)["code"]) == (507, "no_space")
