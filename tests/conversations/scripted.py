"""A runner that does what the question says, so that turns can be tested without a graph.

``say 50 20``: fifty words, twenty a second (0: as fast as possible) · ``cite``: an answer with two
sources (``cite 3``: and its use) · ``late 20``: twenty words, twenty a second, and then the sources ·
``relay``: stream from the configured endpoint · ``wait``: nothing until stopped · ``deaf``: ignores the stop event ·
``crash`` · ``nul`` · ``huge 33``: an event of 33 MB among small ones
"""

import asyncio
import re
from uuid import UUID

import aiohttp
import orjson

from apps.agents.turn import Source, TurnOutcome

DOCUMENT = UUID("11111111-1111-4111-8111-111111111111")
SOURCES = (
    Source(1, "chunk", "Travel policy.pdf", "Economy class is booked.", document_id=DOCUMENT, page=9, start=0, end=24),
    Source(2, "chunk", "差旅管理办法.docx", "住宿标准为每晚 600 元。", document_id=DOCUMENT, page=3),
)
ANSWER = "# Travel\n\nEconomy class is booked [[c2]].\n\n- 标准为每晚 600 元[[c1]]。\n- [[c2]]\n\nThat is all."


def words(count):
    """The tokens of a "say" answer: Markdown with blocks of all kinds."""
    pieces = [
        "word ",
        "更多 ",
        "**bold** ",
        "`code` ",
        "\n\n",
        "- item\n",
        "- 项目\n",
        "\n",
        "1. one\n",
        "\n\n",
        "end. ",
    ]
    return [f"{i} {pieces[i % len(pieces)]}" if pieces[i % len(pieces)].strip() else pieces[i % len(pieces)]
            for i in range(count)]  # fmt: skip


async def run_turn(request, *, events, stop):
    kind, *numbers = request.question.split()
    texts = []

    def token(text):
        texts.append(text)
        events.token(text)

    events.emit("step", {"name": "prepare_context", "status": "finished", "elapsed_ms": 1, "detail": {}})
    outcome = TurnOutcome("succeeded", "", model="scripted")
    if kind == "say":
        rate = float(numbers[1]) if len(numbers) > 1 else 0
        for word in words(int(numbers[0])):
            if stop.is_set():
                return TurnOutcome("stopped", "".join(texts), model="scripted")
            token(word)
            await asyncio.sleep(1 / rate if rate else 0)
    elif kind == "cite":
        events.emit("sources", {"sources": [source.as_event() for source in SOURCES]})
        for piece in re.findall(r"(?s).{1,7}", ANSWER):
            token(piece)
            await asyncio.sleep(0)
        if numbers and numbers[0].isdigit():
            events.emit("usage", {"prompt": int(numbers[0]), "completion": 4, "cached": 1})
        return TurnOutcome("succeeded", "".join(texts), sources=SOURCES, usage={"prompt": 3}, model="scripted")
    elif kind == "late":
        for word in words(int(numbers[0])):
            token(word)
            await asyncio.sleep(0.05)
        events.emit("sources", {"sources": [source.as_event() for source in SOURCES]})
        return TurnOutcome("succeeded", "".join(texts), sources=SOURCES, model="scripted")
    elif kind == "relay":
        async for text in relay(stop):
            token(text)
        if stop.is_set():
            return TurnOutcome("stopped", "".join(texts), model="scripted")
    elif kind == "wait":
        token("Waiting. ")
        await stop.wait()
        return TurnOutcome("stopped", "".join(texts))
    elif kind == "deaf":
        token("Deaf. ")
        await asyncio.sleep(60)
    elif kind == "crash":
        token("Half an ans")
        raise RuntimeError("as asked")
    elif kind == "nul":
        token("a\x00b\ud800c")
        events.emit("step", {"name": "x", "status": "finished", "elapsed_ms": 0, "detail": {"text": "\x00\udfff!"}})
    elif kind == "huge":
        token("Before. ")
        detail = {"text": "x" * (int(numbers[0]) << 20)}
        events.emit("step", {"name": "x", "status": "finished", "elapsed_ms": 0, "detail": detail})
        token("After.")
        return TurnOutcome("succeeded", "".join(texts), model="scripted")
    elif kind == "history":
        token(orjson.dumps(await request.history()).decode())
    return outcome


async def relay(stop):
    """Stream from the vendor as a model client would, closing the connection when stopped."""
    from django.conf import settings

    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{settings.OPENAI_BASE_URL}/chat/completions", json=body) as response,
    ):
        async for line in response.content:
            if stop.is_set():
                return
            if line.startswith(b"data: {"):
                choices = orjson.loads(line[6:])["choices"]
                if choices and (text := choices[0]["delta"].get("content")):
                    yield text
