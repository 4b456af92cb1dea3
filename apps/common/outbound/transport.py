"""The guard inside httpx2, for the openai package.

``httpx2.AsyncClient(transport=GuardedTransport(...), trust_env=False, follow_redirects=False)``.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore2
import httpx2

from apps.common.outbound.errors import OutboundFailed, OutboundRefused, OutboundTooLarge
from apps.common.outbound.guard import check_scheme, checked_addresses

KEPT_OPEN = 100  # connections that wait for the next request; those in use have no bound of their own
KEEPALIVE_S = 30.0


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses only. TLS comes later and takes the name from the request."""

    def __init__(self) -> None:
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await checked_addresses(host, port)
        share = None if timeout is None else timeout / len(addresses)  # so that a dead one leaves time for the next
        for address in addresses[:-1]:
            try:
                return await self._network.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._network.connect_tcp(str(addresses[-1]), port, share, local_address, socket_options)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise OutboundRefused(host="unix:")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """Bounds an answer in size (uncompressed) and in time, from the request to its last byte."""

    def __init__(self, *, max_bytes: int, whole_s: float, verify: ssl.SSLContext | bool = True) -> None:
        context = httpx2.create_ssl_context(verify=verify)
        super().__init__(verify=context)
        if not isinstance(self._pool, httpcore2.AsyncConnectionPool):  # httpx2's own name: another, and nothing is sent
            raise TypeError("httpx2 keeps its connections elsewhere; the guard must be put there")
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=None,  # one tenant's slow endpoint must not keep the others waiting
            max_keepalive_connections=KEPT_OPEN,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=GuardedBackend(),
        )
        self._max_bytes = max_bytes
        self._whole_s = whole_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        check_scheme(request.url.scheme, host)
        request.headers["Accept-Encoding"] = "identity"
        deadline = asyncio.get_running_loop().time() + self._whole_s
        try:
            async with asyncio.timeout_at(deadline):
                response = await super().handle_async_request(request)
        except TimeoutError:
            raise httpx2.ReadTimeout("the answer took too long", request=request) from None
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            raise OutboundFailed(host=host)  # unpacking it could take any amount of memory
        body = _Body(response, host, self._max_bytes, deadline)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=body, extensions=response.extensions
        )


class _Body(httpx2.AsyncByteStream):
    """A response's bytes, up to a size and a point in time."""

    def __init__(self, response: httpx2.Response, host: str, max_bytes: int, deadline: float) -> None:
        self._response = response
        self._host = host
        self._left = max_bytes
        self._deadline = deadline

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = self._response.aiter_raw()
        while True:
            try:
                async with asyncio.timeout_at(self._deadline):
                    part = await anext(parts, None)
            except TimeoutError:
                raise httpx2.ReadTimeout("the answer took too long") from None
            if part is None:
                return
            self._left -= len(part)
            if self._left < 0:
                raise OutboundTooLarge(host=self._host)
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()
