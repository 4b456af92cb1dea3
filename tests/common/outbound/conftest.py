"""Real servers on loopback, a name service and a network that the test decides."""

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

import pytest

PUBLIC, PUBLIC_TOO, PUBLIC_V6 = "93.184.216.34", "151.101.1.140", "2606:2800:220:1:248:1893:25c8:1946"


class Names:
    """Answers of the name service: one list of addresses a lookup, the last one for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    def __setitem__(self, name: str, answers: list[list[str]]) -> None:
        self.answers[name] = answers


@pytest.fixture
def dns(monkeypatch):
    """The name service of this process. Names that the test does not know do not exist."""
    names, real = Names(), socket.getaddrinfo

    def getaddrinfo(host, port, *args, **kwargs):
        if host not in names.answers:
            return real(host, port, *args, **{**kwargs, "flags": socket.AI_NUMERICHOST})
        answers = names.answers[host]
        now = answers[min(names.asked.count(host), len(answers) - 1)]
        names.asked.append(host)
        return [entry for address in now for entry in real(address, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


@pytest.fixture
def routes(monkeypatch):
    """Where packets for an address go: public addresses lead to this machine's loopback. Returns what was dialled."""
    dialled: list[str] = []
    loop_class = asyncio.selector_events.BaseSelectorEventLoop
    real = loop_class.sock_connect

    async def sock_connect(self, sock, address):
        dialled.append(address[0])
        local = {PUBLIC: "127.0.0.1", PUBLIC_TOO: "127.0.0.1"}.get(address[0], address[0])
        if not local.startswith("127."):
            raise ConnectionRefusedError
        return await real(self, sock, (local, *address[1:]))

    monkeypatch.setattr(loop_class, "sock_connect", sock_connect)
    return dialled


def answer(body: bytes = b"hello", *, status: int = 200, length: bool = True, **headers: str) -> bytes:
    """A whole answer as bytes; header names with underscores for dashes."""
    given = {"Content-Type": "text/plain", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if length:
        given["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status} Scripted\r\n{head}Connection: close\r\n\r\n".encode() + body


class Site:
    """A server that answers each path with bytes of the test's own, or with a function of the writer."""

    def __init__(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.address, self.tls = address, tls
        self.pages: dict[str, bytes | Callable] = defaultdict(answer)
        self.requests: list[bytes] = []

    async def start(self) -> "Site":
        self._server = await asyncio.start_server(self._serve, self.address, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader, writer) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            page = self.pages[head.split()[1].decode()]
            if callable(page):
                await page(writer)
            else:
                writer.write(page)
            await writer.drain()
        writer.close()


@pytest.fixture
async def serve():
    """Start sites; they stop with the test."""
    sites: list[Site] = []

    async def serve(address: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Site:
        sites.append(await Site(address, tls).start())
        return sites[-1]

    yield serve
    for site in sites:
        await site.stop()


@pytest.fixture
async def site(serve):
    return await serve()
