"""The floors of the streaming figures: the least that could stand between a browser and a model.

The same uvicorn, Channels consumer, session sign-in and aiohttp stream as the product, one frame a
token; no turn, no graph, no rows: ``uvicorn benchmarks.relay:application``. ``benchmarks.relay:keeping``
also inserts a row for the turn and reads LangGraph's stock checkpoint before it asks the model.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")

import django

django.setup()

import asyncio
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import aiohttp
import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.urls import path

from apps.agents import checkpoints
from apps.common.database import close_pool, pool
from apps.common.lifespan import Lifespan
from apps.conversations import signin


class Upstream:
    """One client session for all sockets."""

    client: aiohttp.ClientSession

    async def start(self) -> None:
        """Open the session."""
        self.client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def stop(self) -> None:
        """Close what was opened."""
        await self.client.close()
        await checkpoints.close_pool()
        await close_pool()

    async def stream(self, question: str) -> Any:
        """Yield the texts of a streamed answer."""
        body = {
            "model": settings.CHAT_MODEL,
            "stream": True,
            "messages": [{"role": "user", "content": question}],
        }
        address = f"{settings.OPENAI_BASE_URL}/chat/completions"
        headers = {"Content-Type": "application/json"}
        async with self.client.post(address, data=orjson.dumps(body), headers=headers) as response:
            rest = b""
            async for received in response.content.iter_any():
                *events, rest = (rest + received).split(b"\n\n")
                for event in events:
                    if event.startswith(b"data: {"):
                        choices = orjson.loads(event[6:])["choices"]
                        if choices and (text := choices[0]["delta"].get("content")):
                            yield text


UPSTREAM = Upstream()


class RelayConsumer(AsyncWebsocketConsumer):
    """Passes a question on and its tokens back."""

    task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await signin.admit(signin.Caller.of(self.scope["headers"]), self.scope["url_route"]["kwargs"]["pk"])
        await self.accept()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        frame = orjson.loads(text_data or "{}")
        if self.task:
            self.task.cancel()
        if frame["type"] == "ask":
            self.task = asyncio.create_task(self._answer(frame["text"]))

    async def _answer(self, question: str) -> None:
        await self._pass_on(question)
        await self.send('{"type":"turn.finished","status":"succeeded"}')

    async def _pass_on(self, question: str) -> None:
        seq = 0
        async with aclosing(UPSTREAM.stream(question)) as texts:
            async for text in texts:
                seq += 1
                frame = orjson.dumps({"type": "token", "seq": seq, "text": text})
                await self.base_send({"type": "websocket.send", "text": frame.decode()})

    async def disconnect(self, code: int) -> None:
        if self.task:
            self.task.cancel()


class KeepingConsumer(RelayConsumer):
    """Writes a row for each turn, reads the conversation's checkpoint before it and writes one after it."""

    async def _answer(self, question: str) -> None:
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        conversation, turn = self.scope["url_route"]["kwargs"]["pk"], uuid4()
        async with (await pool()).connection() as connection:
            await connection.execute(INSERT, (turn, conversation, conversation, turn.hex, question))
        saver = AsyncPostgresSaver(await checkpoints.pool())
        config: Any = {"configurable": {"thread_id": f"relay {conversation}", "checkpoint_ns": ""}}
        before = await saver.aget_tuple(config)
        messages = before.checkpoint["channel_values"]["messages"] if before else []
        await self._pass_on(question)
        version = saver.get_next_version(before.checkpoint["channel_versions"]["messages"] if before else None, None)
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": {"messages": [*messages, {"role": "user", "content": question}][-20:]},
            "channel_versions": {"messages": version},
        }
        await saver.aput(config, checkpoint, {"source": "loop"}, {"messages": version})  # type: ignore[arg-type]
        async with (await pool()).connection() as connection:
            await connection.execute("UPDATE conversations_turn SET status = 'succeeded' WHERE id = %s", (turn,))
        await self.send('{"type":"turn.finished","status":"succeeded"}')


INSERT = """
INSERT INTO conversations_turn (id, conversation_id, number, client_id, status, question, options, model, owner_process,
    stop_requested, last_seq, usage, started_at)
SELECT %s, %s, 1 + coalesce((SELECT max(number) FROM conversations_turn WHERE conversation_id = %s), 0), %s, 'running',
    %s, '{}', '', '', false, 0, '{}', now()
"""


def _served(consumer: type[RelayConsumer]) -> Lifespan:
    sockets = URLRouter([path("ws/conversations/<uuid:pk>/", consumer.as_asgi())])
    return Lifespan(ProtocolTypeRouter({"websocket": sockets}), services=[UPSTREAM])


application = _served(RelayConsumer)
keeping = _served(KeepingConsumer)
