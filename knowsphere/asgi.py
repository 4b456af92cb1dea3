"""The ASGI application: HTTP, websockets, and what has to start and stop with the process."""

import asyncio
import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
os.environ.setdefault("KNOWSPHERE_PROCESS", "web")

import django

django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter, URLRouter

from apps.agents import runner
from apps.common.bodies import Handler
from apps.common.database import close_pool
from apps.common.lifespan import Lifespan
from apps.conversations import routing as conversations
from apps.conversations.engine import ENGINE
from apps.interop.mcp_http import McpEndpoint
from apps.models.connections import Connections
from apps.models.ledger import Ledger
from apps.widgets import routing as widgets
from knowsphere import postgres


class Database:
    """The embedded server stays until this process has stored its last answer, whoever else has gone."""

    def __init__(self) -> None:
        self.ours = False

    async def start(self) -> None:
        """Count as one who needs the server. It is started by whoever started us, and kept up by them."""
        self.ours = postgres.hold(starting=False)

    async def stop(self) -> None:
        """Let the server go, unless this process held it before; the last one out stops it."""
        if self.ours:
            await asyncio.to_thread(postgres.release)


class Pool:
    """The async connection pool opens with its first use and closes after everybody who uses it."""

    async def start(self) -> None:
        """Do nothing: a database that is away must not keep the process from starting."""

    async def stop(self) -> None:
        """Close the pool."""
        await close_pool()


class Collector:
    """Python's collector of cycles looks at what is new, ten thousand objects at a time, not at what is imported.

    With its own thresholds it was a tenth of a turn's CPU, and 0.2 s in one piece now and then.
    """

    async def start(self) -> None:
        """Put away what is there, once in a process."""
        if not gc.get_freeze_count():
            gc.collect()
            gc.freeze()
        gc.set_threshold(10_000, 20, 20)

    async def stop(self) -> None:
        """Leave it so."""


SOCKETS = URLRouter([*conversations.routes, *widgets.routes, conversations.nowhere])
HTTP = McpEndpoint(Handler())
application = Lifespan(
    ProtocolTypeRouter({"http": HTTP, "websocket": SOCKETS}),
    services=[Collector(), Database(), Pool(), Ledger(), Connections(), runner, ENGINE, HTTP],
)
