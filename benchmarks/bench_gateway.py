"""The gateway against a bare aiohttp reader of the same streams: CPU a token, first token, many at once; and intent.

The scripted vendor runs in a process of its own. Bare reader and gateway take turns in this process, so that
both meet the same machine; CPU is this process's own.
"""

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from benchmarks.bench_turns import vendor
from benchmarks.report import Ratio

if TYPE_CHECKING:
    import aiohttp

CALLS = 60  # one after the other, for the first token
STREAMS = 24  # side by side, for CPU
MANY = 200  # side by side, for the delay
BEGIN_WITHIN_S = 4.0
TOKENS = 300
PER_SECOND = 20.0
ROUNDS = 3
INTENTS = 50
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "How many days?"}]}

Pair = tuple[float, float]  # of the bare reader, of the gateway
Read = Callable[[], AsyncIterator[str]]


def run() -> list[Ratio]:
    """Measure first tokens, then CPU at reading speed, then two hundred streams at once."""
    with vendor(tokens=TOKENS, per_second=0) as fast, vendor(tokens=TOKENS, per_second=PER_SECOND) as slow:
        first, cpu, delays = asyncio.run(_measure(fast, slow))
    return [
        Ratio("first token", first[1], first[0], "ms", 1.5),
        Ratio("CPU a token", cpu[1], cpu[0], "us", 1.5),
        Ratio(f"{MANY} streams, p95 delay of a token", delays[1], delays[0], "ms", 1.5),
        Ratio(f"{MANY} streams, the same against 20 ms", delays[1], 20.0, "ms", 1.0),
        Ratio("intent without a model, CPU", _intent_cpu_ms(), 40.0, "ms", 1.0),
    ]


def _intent_cpu_ms() -> float:
    """Return the CPU of telling what a question wants, all threads of this process."""
    from apps.models.builtin.intent import classify_now

    classify_now("Hello")  # loads the embedder
    began = time.process_time()
    for number in range(INTENTS):
        classify_now(f"How many days of leave do I get in year {number}, and may I carry any of them over?")
    return (time.process_time() - began) * 1_000 / INTENTS


async def _measure(fast: str, slow: str) -> tuple[Pair, Pair, Pair]:
    import aiohttp

    from apps.models import connections, ledger

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=2**17) as session:
        bare_fast, bare_slow = _bare(session, fast), _bare(session, slow)
        ours_fast, ours_slow = _gateway(fast), _gateway(slow)
        for read in (bare_fast, ours_fast):  # imports, connections
            await _first_token_ms(read, 5)
        pairs = [
            (await _first_token_ms(bare_fast, CALLS), await _first_token_ms(ours_fast, CALLS)) for _ in range(ROUNDS)
        ]
        first = (min(pair[0] for pair in pairs), min(pair[1] for pair in pairs))
        cpu = (await _cpu_a_token_us(bare_slow), await _cpu_a_token_us(ours_slow))
        delays = (await _p95_delay_ms(bare_slow), await _p95_delay_ms(ours_slow))
    ledger.forget_pending()
    await connections.close()
    return first, cpu, delays


def _bare(session: "aiohttp.ClientSession", url: str) -> Read:
    """Read a stream as simply as it can be read: lines, JSON, the text."""

    async def read() -> AsyncIterator[str]:
        async with session.post(f"{url}/chat/completions", json=BODY) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    if choices and (text := choices[0]["delta"].get("content")):
                        yield text

    return read


def _gateway(url: str) -> Read:
    from apps.models import gateway
    from apps.models.chat import ChatRequest, ResolvedModel

    model = ResolvedModel("chat", "openai_compatible", "m", url, capabilities=frozenset({"stream_usage"}))
    request = ChatRequest([{"role": "user", "content": "How many days?"}])

    async def read() -> AsyncIterator[str]:
        async for delta in gateway.stream_chat(model, request):
            if delta.text:
                yield delta.text

    return read


async def _first_token_ms(read: Read, calls: int) -> float:
    """Return the median time until the first text."""
    times = []
    for _ in range(calls):
        began, first = time.perf_counter(), 0.0
        async for _text in read():
            first = first or time.perf_counter() - began
        times.append(first * 1_000)
    return statistics.median(times)


async def _cpu_a_token_us(read: Read) -> float:
    """Return this process's CPU for a token of streams that are written at reading speed."""
    began = time.process_time()
    counts = await asyncio.gather(*(_count(read) for _ in range(STREAMS)))
    return (time.process_time() - began) / sum(counts) * 1e6


async def _count(read: Read) -> int:
    return sum([1 async for _text in read()])


async def _p95_delay_ms(read: Read) -> float:
    """Return by how much a token comes later than the pace of its own stream, of 95 of 100 at most.

    The streams begin one after the other within seconds, as people ask.
    """

    async def times(number: int) -> list[float]:
        await asyncio.sleep(BEGIN_WITHIN_S * number / MANY)
        return [time.perf_counter() async for _text in read()]

    delays: list[float] = []
    for stream in await asyncio.gather(*(times(number) for number in range(MANY))):
        ideal = min(at - place / PER_SECOND for place, at in enumerate(stream))
        delays += [(at - ideal - place / PER_SECOND) * 1_000 for place, at in enumerate(stream)]
    return statistics.quantiles(delays, n=20)[-1]
