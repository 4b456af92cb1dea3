"""The HTTP server behind ``vendor``: aiohttp in a thread of its own."""

import asyncio
import hashlib
import json
import random
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.vendor.replies import Reply, chunk

ROUTES = {
    "/v1/chat/completions": "chat",
    "/v1/embeddings": "embeddings",
    "/v1/rerank": "rerank",
    "/v1/audio/transcriptions": "transcriptions",
}
DIMENSIONS = 16


@dataclass
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any
    at: float = field(default_factory=time.monotonic)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]


class Vendor:
    """Start with ``Vendor().start()``; ``url`` is what OPENAI_BASE_URL wants to be."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._news = threading.Condition()
        self.reset()

    def reset(self) -> None:
        """Forget scripts and requests, as between two tests."""
        self.requests: list[Received] = []
        self.closed: list[Received] = []
        self.listing: tuple[int, Any] | None = None  # status and body, instead of ``models``
        self.models = ["scripted-chat", "scripted-fast", "scripted-embedding"]
        self.otherwise: Callable[[Received], Reply] = lambda request: Reply("A scripted answer.")
        self._scripts: dict[str, deque[Reply]] = defaultdict(deque)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, replies: Iterable[Reply | str], to: str = "stream") -> None:
        """Queue answers, in order; when none is left ``otherwise(request)`` answers.

        ``to``: "stream" (chats that stream), "chat" (those that do not: decisions, summaries),
        "embeddings", "rerank" or "transcriptions". Each has a queue of its own.
        """
        self._scripts[to].extend(Reply(reply) if isinstance(reply, str) else reply for reply in replies)

    def wait(self, condition: Callable[["Vendor"], Any], seconds: float = 2.0) -> bool:
        """Block until ``condition(vendor)`` holds; False when it never did."""
        with self._news:
            return bool(self._news.wait_for(lambda: condition(self), seconds))

    def wait_closed(self, count: int = 1, seconds: float = 2.0) -> bool:
        """Block until ``count`` clients hung up early."""
        return self.wait(lambda vendor: len(vendor.closed) >= count, seconds)

    # the server's life

    def start(self) -> "Vendor":
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), name="vendor", daemon=True).start()
        if not ready.wait(10):
            raise RuntimeError("the scripted vendor did not start")
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.close()

    async def _listen(self) -> None:
        app = web.Application(client_max_size=2**28)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/api/tags", self._list_tags)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]

    # answers

    async def _list_models(self, request: web.Request) -> web.Response:
        self.requests.append(Received(request.path, dict(request.headers), b"", None))
        if self.listing is not None:
            return web.json_response(self.listing[1], status=self.listing[0])
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})

    async def _list_tags(self, request: web.Request) -> web.Response:
        """As an Ollama lists what it has."""
        return web.json_response({"models": [{"name": name, "size": 1} for name in self.models]})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        received = Received(request.path, dict(request.headers), raw, body)
        with self._news:
            self.requests.append(received)
            self._news.notify_all()
        if request.path.startswith("/page/"):
            return web.Response(text="<html>Welcome</html>", content_type="text/html")
        kind = ROUTES.get(request.path)
        if kind is None:
            return web.json_response({"error": {"message": f"no such path: {request.path}"}}, status=404)
        if kind == "chat" and (body or {}).get("stream"):
            kind = "stream"
        reply = self._scripts[kind].popleft() if self._scripts[kind] else self.otherwise(received)
        try:
            return await self._answer(kind, reply, request, received)
        except (asyncio.CancelledError, ConnectionResetError):
            with self._news:
                self.closed.append(received)
                self._news.notify_all()
            raise

    async def _answer(self, kind: str, reply: Reply, request: web.Request, received: Received) -> web.StreamResponse:
        await asyncio.sleep(reply.delay)
        if reply.status != 200 and isinstance(reply.body, str):
            return web.Response(status=reply.status, text=reply.body, headers=reply.headers)
        if reply.status != 200:
            error = {"message": reply.error, "type": "scripted"} if isinstance(reply.error, str) else reply.error
            return web.json_response({"error": error}, status=reply.status, headers=reply.headers)
        if kind == "stream" and reply.body is None:
            return await self._stream(reply, request)
        if reply.stall_after is not None:
            await asyncio.sleep(3600)
        if reply.hold is not None:
            await self._held(reply.hold)
        writers = {"embeddings": self._embeddings, "rerank": self._rerank, "transcriptions": self._transcriptions}
        value = writers[kind](reply, received) if kind in writers else reply.whole()
        return web.json_response(value, headers=reply.headers)

    async def _stream(self, reply: Reply, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
        await response.prepare(request)
        if reply.raw is not None:
            parts = reply.raw
        else:
            parts = [b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n" for value in reply.stream()]
            if reply.done:
                parts.append(b"data: [DONE]\n\n")
        began = time.monotonic()
        made = reply.raw is None and reply.chunks is None  # then the first part only has the role
        for number, part in enumerate(parts, start=-1 if made else 0):
            if number == reply.hold_after and reply.hold is not None:
                await self._held(reply.hold)
            if number == reply.stall_after:
                await asyncio.sleep(3600)
            if number == reply.cut_after:
                await asyncio.sleep(0.02)  # a client that gets data and the cut at once may drop the data
                request.transport.close()  # type: ignore[union-attr]
                return response
            if number == reply.error_after:
                error = reply.error if isinstance(reply.error, dict) else {"message": reply.error, "code": 500}
                await response.write(b"data: " + json.dumps({"error": error}).encode() + b"\n\n")
                return response
            if reply.per_second:
                await asyncio.sleep(max(0.0, began + number / reply.per_second - time.monotonic()))
            elif reply.raw is not None:
                await asyncio.sleep(0.002)  # so that each part is read by itself
            if reply.clock and 0 <= number < len(reply.split()):
                part = b"data: " + json.dumps(chunk({"content": f" {time.time():.6f}"})).encode() + b"\n\n"
            await response.write(part)
        return response

    async def _held(self, event: threading.Event) -> None:
        while not event.is_set():
            await asyncio.sleep(0.005)

    def _embeddings(self, reply: Reply, request: Received) -> Any:
        if reply.body is not None:
            return reply.body
        inputs = request.body["input"]
        inputs = [inputs] if isinstance(inputs, str) else inputs
        vectors = reply.vectors if reply.vectors is not None else [vector(text) for text in inputs]
        data = [{"object": "embedding", "index": i, "embedding": one} for i, one in enumerate(vectors)]
        tokens = sum(len(text) for text in inputs)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": request.body["model"], "data": data, "usage": usage}

    def _rerank(self, reply: Reply, request: Received) -> Any:
        if reply.body is not None:
            return reply.body
        wanted = set(request.body["query"].lower())
        scores = [len(wanted & set(text.lower())) / len(wanted | {""}) for text in request.body["documents"]]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[: request.body.get("top_n", len(scores))]
        return {"results": [{"index": i, "relevance_score": scores[i]} for i in order]}

    def _transcriptions(self, reply: Reply, request: Received) -> Any:
        return reply.body if reply.body is not None else {"text": reply.text}


def vector(text: str) -> list[float]:
    """A vector that is always the same for a text, and unlike those of others."""
    rng = random.Random(hashlib.sha256(text.encode()).digest())
    return [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
