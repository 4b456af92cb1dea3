"""Turns against the relay: time to the first token, CPU a token at reading speed, and its delay among a hundred.

Four processes: the scripted vendor, this client, and one server at a time. CPU is the server
process's own, all its threads, from the first question to the last answer. The first token's floor is
the relay that keeps a row and a checkpoint; of the product it is its own time: the same question is asked
each time, so the local classifier answers from its cache, and what the model's own first token takes, asked
directly, is taken off.
"""

import asyncio
import json
import os
import socket as sockets
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from uuid import UUID, uuid4

import aiohttp
import psutil
from websockets.asyncio.client import ClientConnection, connect

from apps.common.database import in_db
from apps.common.database import run as run_sql
from benchmarks.report import Ratio

TURNS = 41  # one after the other, for the first token
AT_ONCE = 12  # side by side, for CPU
CROWD = 100  # side by side, for the delay of a token
DELAY_MS = 20.0  # that 95 of 100 tokens of a crowd may take from the vendor to the reader
TOKENS = 300
PER_SECOND = 20.0
MANY = 1_000  # of one conversation, for what is written
QUESTION = "Hello"  # a greeting: one call of the model, no search


def run() -> list[Ratio]:
    """Measure the relays, the engine alone and the whole product, in this order."""
    session, threads = prepare()
    servers = {
        "relay": "benchmarks.relay:application",
        "keeping": "benchmarks.relay:keeping",
        "engine": "benchmarks.turn_engine_alone:application",
        "product": "knowsphere.asgi:application",
    }
    first: dict[str, float] = {}
    cpu: dict[str, float] = {}
    delay: dict[str, float] = {}
    with (
        vendor(tokens=20, per_second=0) as fast,
        vendor(tokens=TOKENS, per_second=PER_SECOND) as slow,
        vendor(tokens=100, per_second=PER_SECOND, clock=True) as clock,
    ):
        call = asyncio.run(model_call_ms(fast))
        for name, application in servers.items():
            conversations = threads[name]
            with server(application, fast) as (port, process):
                first[name] = asyncio.run(first_token_ms(port, process, session, conversations[-1]))
                if name == "product":
                    written, said = asyncio.run(written_bytes(port, session, conversations[-2]))
            if name == "keeping":
                continue
            with server(application, slow) as (port, process):
                cpu[name] = asyncio.run(cpu_a_token_us(port, process, session, conversations[:AT_ONCE]))
            if name != "engine":
                with server(application, clock) as (port, _):
                    delay[name] = asyncio.run(delay_ms(port, session, conversations))
    return [
        Ratio("first token, own time of the engine alone", first["engine"] - call, first["keeping"], "ms", 3.0),
        Ratio("first token, own time of the product", first["product"] - call, first["keeping"], "ms", 3.0),
        Ratio("first token, whole product over the bare relay", first["product"], first["relay"], "ms", float("inf")),
        Ratio("first token of the model itself over the bare relay", call, first["relay"], "ms", float("inf")),
        Ratio("CPU a token, engine alone", cpu["engine"], cpu["relay"], "us", 2.0),
        Ratio("CPU a token, whole product", cpu["product"], cpu["relay"], "us", 2.0),
        Ratio(f"written in {MANY:,} turns of a conversation, over what was said", written, said, "B", float("inf")),
        Ratio("p95 delay of a token, bare relay, 100 turns", delay["relay"], DELAY_MS, "ms", 1.0),
        Ratio("p95 delay of a token, product, 100 turns", delay["product"], DELAY_MS, "ms", 1.0),
    ]


def prepare() -> tuple[str, defaultdict[str, list[UUID]]]:
    """Make a person with a session; return its key, and conversations for each server, none of them used before."""
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

    from apps.conversations.services import start_conversation
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    user = User.objects.create_user(f"{uuid4().hex}@bench.example")
    workspace = create_workspace(name="Bench", owner=user)
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[1]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    threads: defaultdict[str, list[UUID]] = defaultdict(
        lambda: [start_conversation(workspace=workspace, actor=user).pk for _ in range(CROWD)]
    )
    return session.session_key, threads


@contextmanager
def vendor(*, tokens: int, per_second: float, clock: bool = False) -> Iterator[str]:
    """Run the scripted vendor; yield its address. ``clock``: each token is the moment at which it is sent."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.vendor", "0", "--tokens", str(tokens), "--per-second", str(per_second)),
            *(["--clock"] if clock else []),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


@contextmanager
def server(application: str, model_url: str) -> Iterator[tuple[int, psutil.Process]]:
    """Run one server as the product runs its own; yield its port and process."""
    with sockets.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable, "-m", "uvicorn", application, "--port", str(port), "--ws", "websockets-sansio",
            "--loop", "uvloop", "--http", "httptools", "--ws-per-message-deflate", "false", "--lifespan", "on",
            "--log-level", "error", "--no-access-log", "--timeout-graceful-shutdown", "2",
        ],
        env={**os.environ, "OPENAI_BASE_URL": model_url, "CHAT_MODEL": "bench", "OPENAI_API_KEY": "bench"},
    )  # fmt: skip
    try:
        wait_for(port)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def wait_for(port: int) -> None:
    """Wait until the server listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with sockets.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


def tab(port: int, session: str, conversation: UUID) -> connect:
    """Return a socket that is not open yet."""
    cookie = {"Cookie": f"ks_session={session}"}
    return connect(f"ws://127.0.0.1:{port}/ws/conversations/{conversation}/", additional_headers=cookie)


async def ask(socket: ClientConnection) -> tuple[float, int]:
    """Ask; return the milliseconds to the first token and the number of token frames of the whole turn."""
    began = time.perf_counter()
    await socket.send(json.dumps({"type": "ask", "text": QUESTION, "client_id": uuid4().hex}))
    first, tokens = 0.0, 0
    while True:
        frame = json.loads(await socket.recv())
        if frame["type"] == "token":
            tokens += 1
            first = first or (time.perf_counter() - began) * 1000
        elif frame["type"] in {"turn.finished", "error"}:
            if frame.get("status") != "succeeded":
                raise RuntimeError(f"the turn failed: {frame}")
            return first, tokens


async def model_call_ms(address: str) -> float:
    """Return the median of what the scripted vendor takes to its first byte, asked directly."""
    body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    found = []
    async with aiohttp.ClientSession() as client:
        for _ in range(5 + TURNS):
            began = time.perf_counter()
            async with client.post(f"{address}/chat/completions", json=body) as response:
                await response.content.readany()
                found.append((time.perf_counter() - began) * 1000)
                await response.read()
    return statistics.median(found[5:])


async def first_token_ms(port: int, process: psutil.Process, session: str, conversation: UUID) -> float:
    """Return the median over turns that come one after the other."""
    async with tab(port, session, conversation) as socket:
        for _ in range(5):
            await ask(socket)
        await at_rest(process)
        return statistics.median([(await ask(socket))[0] for _ in range(TURNS)])


async def written_bytes(port: int, session: str, conversation: UUID) -> tuple[float, float]:
    """Return what the database's log grows by with many turns of one conversation, and the bytes of their texts.

    All that a turn writes is in it: rows, events, the state (whose messages are all written anew each time), indexes.
    """
    from apps.conversations.models import Message

    before = await in_db(_log_bytes)
    async with tab(port, session, conversation) as socket:
        for _ in range(MANY):
            await ask(socket)
    texts = Message.objects.filter(conversation=conversation)
    said = await in_db(lambda: sum(len(text.encode()) for text in texts.values_list("text", flat=True)))
    return await in_db(_log_bytes) - before, said


def _log_bytes() -> float:
    return float(run_sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn", [])[0][0])


async def cpu_a_token_us(port: int, process: psutil.Process, session: str, conversations: list[UUID]) -> float:
    """Return the server's CPU for turns side by side, over the tokens that they sent.

    One turn begins and is stopped before: what a process does once, such as loading a model, is not
    a token's cost.
    """
    async with tab(port, session, conversations[0]) as warm:
        await warm.send(json.dumps({"type": "ask", "text": QUESTION, "client_id": uuid4().hex}))
        frame: dict[str, object] = {}
        while frame.get("type") != "token":
            frame = json.loads(await warm.recv())
        await warm.send(json.dumps({"type": "stop"}))
        await asyncio.sleep(2)
        await at_rest(process)
    tabs = [tab(port, session, conversation) for conversation in conversations]
    sockets = [await tab for tab in tabs]
    before = process.cpu_times()
    results = await asyncio.gather(*(ask(socket) for socket in sockets))
    after = process.cpu_times()
    for socket in sockets:
        await socket.close()
    spent = after.user + after.system - before.user - before.system
    return spent * 1e6 / (len(results) * TOKENS)


async def at_rest(process: psutil.Process) -> None:
    """Wait until a server has loaded what it loads behind its first turn: less than a tenth of a core is used."""
    for _ in range(60):
        before = sum(process.cpu_times()[:2])
        await asyncio.sleep(0.5)
        if sum(process.cpu_times()[:2]) - before < 0.05:
            return


async def delay_ms(port: int, session: str, conversations: list[UUID]) -> float:
    """Return the 95th percentile of what a token takes from the vendor to the reader, in a crowd of turns.

    What is measured is the middle of the answers: all turns are under way then, and none begins or ends.
    """
    sockets = [await tab(port, session, conversation) for conversation in conversations]
    await asyncio.gather(*(ask(socket) for socket in sockets[:AT_ONCE]))  # loads what is loaded once
    delays = [one for turn in await asyncio.gather(*map(_delays, sockets)) for one in turn]
    for socket in sockets:
        await socket.close()
    return statistics.quantiles(delays, n=20)[-1] * 1000


async def _delays(socket: ClientConnection) -> list[float]:
    await socket.send(json.dumps({"type": "ask", "text": QUESTION, "client_id": uuid4().hex}))
    found: list[float] = []
    while True:
        frame = json.loads(await socket.recv())
        now = time.time()
        if frame["type"] == "token":
            found += [now - float(sent) for sent in frame["text"].split()]
        elif frame["type"] in {"turn.finished", "error"}:
            if frame.get("status") != "succeeded":
                raise RuntimeError(f"the turn failed: {frame}")
            return found[len(found) // 2 :]
