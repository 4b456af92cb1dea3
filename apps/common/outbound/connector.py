"""The guard inside aiohttp: ``ClientSession(connector=GuardedConnector())``. Proxies are not used."""

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from apps.common.outbound.addresses import is_public
from apps.common.outbound.guard import check_host, check_scheme, checked_addresses

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]


class GuardedConnector(TCPConnector):
    """Connects to checked addresses only; TLS and the Host header keep the name.

    aiohttp asks ``connect`` for every request (each hop of a redirect too), the resolver for every name
    (but not for hosts that are addresses), and ``_checked_socket`` for every address it goes to.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            resolver=_GuardedResolver(self), use_dns_cache=False, socket_factory=self._checked_socket, **options
        )
        self._opened: set[tuple[str, int]] = set()  # not public, but opened by the operator

    async def connect(self, req: ClientRequest, traces: "list[Trace]", timeout: ClientTimeout) -> "Connection":
        host, port = req.url.raw_host or "", req.url.port or 0
        check_scheme(req.url.scheme, host)
        if (address := check_host(host, port)) is not None:
            self.grant(str(address), port)
        return await super().connect(req, traces, timeout)

    def grant(self, address: str, port: int) -> None:
        """Note an address that the guard let pass."""
        if not is_public(ip_address(address)):
            self._opened.add((address, port))

    def _checked_socket(self, info: AddressInfo) -> socket.socket:
        family, kind, protocol, _name, (address, port, *_rest) = info
        if not is_public(ip_address(address)) and (address, port) not in self._opened:
            raise PermissionError("an address that was not checked")
        return socket.socket(family, kind, protocol)


class _GuardedResolver(AbstractResolver):
    def __init__(self, connector: GuardedConnector) -> None:
        self._connector = connector

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = [str(address) for address in await checked_addresses(host, port)]
        for address in found:
            self._connector.grant(address, port)
        return [_result(host, address, port) for address in found]

    async def close(self) -> None:
        """Nothing is held."""


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
