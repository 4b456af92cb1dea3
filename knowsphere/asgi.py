"""The ASGI application: HTTP, websockets, and what has to start and stop with the process."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
os.environ.setdefault("KNOWSPHERE_PROCESS", "web")

import django

django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter

from apps.agents import runner
from apps.common.bodies import Handler
from apps.common.database import close_pool
from apps.common.lifespan import Lifespan
from apps.conversations.engine import ENGINE
from apps.conversations.routing import sockets
from apps.models.connections import Connections
from apps.models.ledger import Ledger


class Pool:
    """The async connection pool opens with its first use and closes after everybody who uses it."""

    async def start(self) -> None:
        """Do nothing: a database that is away must not keep the process from starting."""

    async def stop(self) -> None:
        """Close the pool."""
        await close_pool()


application = Lifespan(
    ProtocolTypeRouter({"http": Handler(), "websocket": sockets}),
    services=[Pool(), Ledger(), Connections(), runner, ENGINE],
)
