"""A tab: one websocket, and the frames that came."""

import asyncio
import json
from uuid import uuid4

from websockets.asyncio.client import connect


class Tab:
    """An open socket on a conversation; ``frames`` are all that came, in order."""

    def __init__(self, server, conversation_id, *, session=None, origin=None, headers=None):
        cookie = {"Cookie": f"ks_session={session}"} if session else {}
        self._connect = connect(
            f"ws://127.0.0.1:{server.port}/ws/conversations/{conversation_id}/",
            additional_headers={**cookie, **(headers or {})},
            origin=origin,
            max_size=None,
        )
        self.frames = []

    async def __aenter__(self):
        self.socket = await self._connect.__aenter__()
        return self

    async def __aexit__(self, *args):
        await self._connect.__aexit__(*args)

    async def send(self, **frame):
        await self.socket.send(json.dumps(frame))

    async def ask(self, text, client_id=None, **more):
        await self.send(type="ask", text=text, client_id=client_id or uuid4().hex, **more)

    async def next(self, timeout=60):
        async with asyncio.timeout(timeout):
            frame = json.loads(await self.socket.recv())
        self.frames.append(frame)
        return frame

    async def until(self, kind, timeout=60):
        """Read on to the first frame of a type (or an error); return it."""
        async with asyncio.timeout(timeout):
            while True:
                frame = await self.next(timeout)
                if frame["type"] in (kind, "error"):
                    return frame

    async def turn(self):
        """Read a whole turn; return its last frame."""
        return await self.until("turn.finished")

    @property
    def text(self):
        return "".join(frame["text"] for frame in self.frames if frame["type"] == "token")


def numbered(frames):
    """The frames of turns, without errors and pongs."""
    return [frame for frame in frames if "seq" in frame]
