"""The MCP server at ``/mcp``: streamable HTTP, without sessions, a key in each request.

Nothing of it is imported before the first request comes.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import orjson
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from apps.common import logs
from apps.common.database import in_db
from apps.common.errors import KnowSphereError, NotFound, Unexpected
from apps.rest import throttles
from apps.rest.errors import MethodNotAllowed, NotSignedIn
from apps.workspaces.api.authentication import bearer
from apps.workspaces.models import User
from apps.workspaces.services import principal_of_key

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]
PATH = "/mcp"
USER = "knowsphere.user"  # in the scope: whom the key belongs to


class McpEndpoint:
    """An ASGI application that takes ``/mcp`` and passes everything else on; it lives as long as the process."""

    def __init__(self, others: Application) -> None:
        self.others = others
        self._manager: Any = None
        self._life: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def start(self) -> None:
        """Do nothing yet: most servers never meet an MCP client."""

    async def stop(self) -> None:
        """End what is running."""
        self._over.set()
        if self._life is not None:
            with suppress(Exception):
                await self._life
        self._manager, self._life, self._over = None, None, asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].rstrip("/") != PATH:
            await self.others(scope, receive, send)
            return
        token = logs.request_id.set(uuid.uuid4().hex)
        place = logs.client_ip.set(logs.address((scope.get("client") or (None,))[0]))
        try:
            await self._serve(scope, receive, send)
        except KnowSphereError as error:
            await _refuse(send, error)
        except Exception:
            logger.exception("the MCP endpoint raised")
            await _refuse(send, Unexpected())
        finally:
            logs.client_ip.reset(place)
            logs.request_id.reset(token)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not validate_host(split_domain_port(headers.get(b"host", ""))[0], settings.ALLOWED_HOSTS):
            raise NotFound
        if scope["method"] != "POST":
            raise MethodNotAllowed(method=scope["method"])
        secret = bearer(headers.get(b"authorization", ""))
        if secret is None:
            raise NotSignedIn
        user = await in_db(_admit, secret)
        manager = await self._started()
        await manager.handle_request({**scope, USER: user}, receive, send)

    async def _started(self) -> Any:
        """Return the protocol's side of the server, starting it with the first request."""
        if self._manager is None:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            from apps.interop.mcp_server import build

            self._manager = StreamableHTTPSessionManager(build(_caller_of), stateless=True, json_response=True)
            ready = asyncio.Event()
            self._life = asyncio.create_task(self._live(self._manager, ready))
            await ready.wait()
        return self._manager

    async def _live(self, manager: Any, ready: asyncio.Event) -> None:
        async with manager.run():
            ready.set()
            await self._over.wait()


def _admit(secret: str) -> User:
    user = principal_of_key(secret)
    throttles.count(user, user.principal)
    return user


def _caller_of(context: Any) -> Any:
    from apps.interop.mcp_tools import Caller

    user: User = context.request.scope[USER]
    return Caller(user, user.principal.workspace_id)  # type: ignore[arg-type]  # a key always has one


async def _refuse(send: Send, error: KnowSphereError) -> None:
    headers = [(b"content-type", b"application/json")]
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="KnowSphere"'))
    if "retry_after" in error.details:
        headers.append((b"retry-after", str(error.details["retry_after"]).encode()))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(error.as_dict(), default=str)})
