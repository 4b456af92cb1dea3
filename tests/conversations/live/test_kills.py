"""Web process and database killed in the middle of an answer. A database and processes of its own."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from knowsphere import postgres
from tests.conversations.live.client import Tab
from tests.conversations.scripted import words
from tests.platform.conftest import Home

pytestmark = pytest.mark.slow

PREPARE = """
import json
from tests.conversations.live.conftest import People
from apps.conversations.services import start_conversation
people = People()
ids = [str(start_conversation(workspace=people.acme, actor=people.ann).pk) for _ in range(5)]
print(json.dumps({"session": people.session(people.ann), "conversations": ids}))
"""


class Installation:
    """A home with a database, a person, conversations, and a web process that can be killed."""

    def __init__(self, home):
        self.home = home
        self.holder = None
        self.log = home.path.parent / "web.log"
        self.web = None

    def prepare(self):
        done = self.home.run("manage.py", "setup")
        assert done.returncode == 0, done.stderr
        self.holder = self.home.hold()
        made = self.home.run("manage.py", "shell", "-v0", "-c", PREPARE)
        assert made.returncode == 0, made.stderr
        known = json.loads(made.stdout.strip().splitlines()[-1])
        self.session, self._conversations = known["session"], iter(known["conversations"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        return self

    def start_web(self, **environment):
        self.web = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "tests.conversations.live.scripted_asgi:application", "--port",
             str(self.port), "--ws", "websockets-sansio", "--lifespan", "on", "--log-level", "error",
             "--timeout-graceful-shutdown", "1"],
            env=self.home.environment(**environment), stdout=subprocess.DEVNULL, stderr=self.log.open("ab"),
        )  # fmt: skip
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=1)
                return
            except OSError:
                time.sleep(0.1)
        pytest.fail(f"the web process did not start: {self.log.read_text()[-2000:]}")

    def kill_web(self, how=signal.SIGKILL):
        self.web.send_signal(how)
        self.web.wait(20)

    def next_conversation(self):
        self.conversation = next(self._conversations)
        return self.conversation

    def tab(self):
        return Tab(SimpleNamespace(port=self.port), self.conversation, session=self.session)

    def page(self, accept="text/html"):
        """Status and body of the front page, which needs session, person and workspaces."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/", headers={"Cookie": f"ks_session={self.session}", "Accept": accept}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def rows(self, sql):
        with psycopg.connect(
            host=str(self.home.cluster.socket), port=postgres.PORT, user="postgres", dbname="knowsphere"
        ) as connection:
            return connection.execute(sql, {"conversation": self.conversation}).fetchall()

    def answer(self):
        found = self.rows(
            "SELECT t.status, m.text FROM conversations_message m JOIN conversations_turn t ON t.id = m.turn_id"
            " WHERE m.role = 'assistant' AND t.conversation_id = %(conversation)s ORDER BY t.number DESC LIMIT 1"
        )
        return found[0] if found else None


@pytest.fixture(scope="module")
def installation():
    top = Path(tempfile.mkdtemp(prefix="ks-kills-"))
    home = Home(top / "var")
    made = Installation(home)
    try:
        yield made.prepare()
    finally:
        if made.web and made.web.poll() is None:
            made.kill_web()
        home.clean()
        shutil.rmtree(top, ignore_errors=True)


@pytest.fixture
def web(installation):
    installation.next_conversation()
    if installation.web is None or installation.web.poll() is not None:
        installation.start_web()
    return installation


async def test_a_killed_web_process_leaves_an_interrupted_turn_and_the_next_one_works(web):
    async with web.tab() as one:
        await one.ask("say 1000 60")
        while len(one.text) < 200:
            await one.next()
        web.kill_web()
    seen = one.frames[-1]["seq"]
    web.start_web()
    async with web.tab() as again:
        await again.send(type="resume", turn=one.frames[0]["turn"], after=seen)
        end = await again.until("turn.finished", timeout=30)
        assert (end["status"], end["error"]["code"]) == ("interrupted", "turn_interrupted")
        assert end["seq"] > seen
        assert end["seq"] > end["last_seq"] + 1
        valid = "".join(
            frame["text"] for frame in one.frames if frame["type"] == "token" and frame["seq"] <= end["last_seq"]
        )
        status, text = web.answer()
        assert status == "interrupted"
        assert text.startswith(valid)
        assert "".join(words(1000)).startswith(text)
        assert len(text) > 100
        await again.ask("say 3")
        assert (await again.until("turn.finished"))["status"] == "succeeded"


async def test_a_terminated_web_process_ends_its_turns_in_order(web):
    async with web.tab() as one:
        await one.ask("say 1000 60")
        while len(one.text) < 100:
            await one.next()
        await asyncio.to_thread(web.kill_web, signal.SIGTERM)
    status, text = web.answer()
    assert status == "interrupted"
    assert text.startswith(one.text)
    kinds = web.rows(
        "SELECT e.seq, e.type FROM conversations_turnevent e JOIN conversations_turn t ON t.id = e.turn_id"
        " WHERE t.conversation_id = %(conversation)s ORDER BY e.seq"
    )
    assert [seq for seq, _ in kinds] == list(range(1, len(kinds) + 1))
    assert kinds[-1][1] == "turn.finished"


async def test_an_answer_outlives_its_database(web):
    """The server is killed while tokens stream, and comes back after the answer is complete."""
    async with web.tab() as one:
        await one.ask("say 120 60")
        while len(one.text) < 100:
            await one.next()
        os.kill(web.home.postmaster, signal.SIGKILL)
        await one.send(type="stop")
        error = await one.until("error", timeout=20)
        assert (error["code"], error["retryable"]) == ("service_unavailable", True)
        while not any(frame.get("name") == "store_answer" for frame in one.frames):
            await one.next(timeout=20)
        assert one.text == "".join(words(120))
        await asyncio.to_thread(postgres.start, web.home.cluster)
        end = await one.until("turn.finished", timeout=40)
        assert (end["status"], end["error"]) == ("succeeded", None)
    assert web.answer() == ("succeeded", "".join(words(120)))
    frames = [frame for frame in one.frames if "seq" in frame]
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    async with web.tab() as again:
        await again.send(type="resume", turn=end["turn"], after=0)
        await again.until("turn.finished")
        assert again.frames == frames
        await again.ask("say 2")
        assert (await again.until("turn.finished"))["status"] == "succeeded"


def test_pages_say_that_the_database_is_away_and_work_at_once_when_it_is_back(web):
    with ThreadPoolExecutor(12) as many:
        assert {status for status, _ in many.map(lambda _: web.page(), range(24))} == {200}
        os.kill(web.home.postmaster, signal.SIGKILL)
        status, body = web.page("application/json")
        assert (status, json.loads(body)["code"], json.loads(body)["retryable"]) == (503, "service_unavailable", True)
        status, body = web.page()
        assert status == 503
        assert "PostgreSQL does not answer at the moment." in body
        for _ in range(2):  # 20 s: pauses between attempts to connect must not outlast the outage
            assert web.page()[0] == 503
        postgres.start(web.home.cluster)
        began = time.monotonic()
        assert {status for status, _ in many.map(lambda _: web.page(), range(24))} == {200}
        assert time.monotonic() - began < 15, "the pool's own pauses would grow to half a minute"


async def test_a_database_that_stays_away_leaves_the_text_to_the_reader_and_is_stored_late(web):
    await asyncio.to_thread(web.kill_web)
    await asyncio.to_thread(web.start_web, PATIENCE_S="1")
    async with web.tab() as one:
        await one.ask("say 60 60")
        await one.until("token")
        os.kill(web.home.postmaster, signal.SIGKILL)
        end = await one.until("turn.finished", timeout=30)
        assert (end["status"], end["error"]["code"]) == ("failed", "answer_not_stored")
        assert one.text == "".join(words(60))
    await asyncio.to_thread(postgres.start, web.home.cluster)
    async with asyncio.timeout(30):
        while await asyncio.to_thread(web.answer) != ("failed", "".join(words(60))):
            await asyncio.sleep(0.2)
