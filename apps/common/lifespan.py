"""ASGI lifespan: start services before the first request, stop them after the last."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Service(Protocol):
    """Something that lives as long as the process."""

    async def start(self) -> None:
        """Begin; an exception stops the whole process from starting."""

    async def stop(self) -> None:
        """Finish within the server's grace time."""


class Lifespan:
    """Wrap an ASGI application (Channels' router knows no lifespan) and own its services."""

    def __init__(self, application: Application, *, services: Sequence[Service]) -> None:
        self.application = application
        self.services = services

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                for service in self.services:
                    await service.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                for service in reversed(self.services):
                    try:
                        await service.stop()
                    except Exception:
                        logger.exception("%s did not stop in order", type(service).__name__)
                await send({"type": "lifespan.shutdown.complete"})
                return
