"""``make run``'s process: everything starts, comes back, and is gone when it is told to go."""

import http.client
import http.server
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from knowsphere import postgres
from tests.platform.conftest import NOBODY, Home, can_become_nobody

pytestmark = [pytest.mark.xdist_group("embedded-server"), pytest.mark.slow]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, seconds=40):
    deadline = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


class Product:
    """A running supervisor."""

    def __init__(
        self, home: Home, meanwhile: Callable[["Product"], None] = lambda product: None, **variables: str
    ) -> None:
        self.home = home
        self.port = free_port()
        self.process = home.popen("-m", "knowsphere.supervisor", PORT=str(self.port), **variables)
        meanwhile(self)
        self.read_until_ready()

    def read_until_ready(self) -> None:
        self.printed = ""
        while "Ctrl-C" not in self.printed:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.printed += line
        self.printed += self.process.stdout.readline()

    def status(self, path: str) -> int | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None
        finally:
            connection.close()

    def child(self, word: str) -> psutil.Process | None:
        """The direct child whose command line has this word."""
        for child in psutil.Process(self.process.pid).children():
            try:
                if word in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                    return child
            except psutil.NoSuchProcess:
                continue
        return None

    def everything(self) -> list[psutil.Process]:
        """Every process of this product: by its state folder, which is in their environment, and the server's."""
        mine = f"KNOWSPHERE_HOME={self.home.path}".encode()
        found = [psutil.Process(pid) for pid in postgres._processes(self.home.cluster) if psutil.pid_exists(pid)]
        for process in psutil.process_iter():
            try:
                if mine in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                    found.append(process)
            except OSError:
                continue
        return found

    def finish(self, seconds=30) -> int:
        _, self.errors = self.process.communicate(timeout=seconds)
        return self.process.returncode

    def assert_nothing_left(self) -> None:
        assert not self.everything()
        assert not list(self.home.cluster.socket.glob(".s.*"))
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", self.port))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """One migrated state folder for all tests of this file, since each test stops its server."""
    home = Home(tmp_path_factory.mktemp("warm") / "var")
    done = home.run("manage.py", "setup")
    assert done.returncode == 0, done.stderr
    yield home
    home.clean()


@pytest.fixture
def product(warm):
    product = Product(warm)
    yield product
    if product.process.poll() is None:
        product.process.send_signal(signal.SIGTERM)
        product.finish()


def test_says_where_it_is_once_it_answers_and_how_to_sign_in(product):
    assert f"KnowSphere is at http://127.0.0.1:{product.port} " in product.printed
    assert "Sign in" in product.printed
    assert product.status("/healthz") == 200
    assert product.status("/readyz") == 200
    assert product.status("/accounts/login/") == 200


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything(product, sign):
    assert len(product.everything()) > 5, "web, worker and its children, server and its children"
    product.process.send_signal(sign)
    assert product.finish() == 0
    assert "Traceback" not in product.errors
    product.assert_nothing_left()


def test_whatever_is_killed_comes_back(product):
    web = product.child("uvicorn")
    web.kill()
    assert product.status("/healthz") == 200, "a browser waits in the meantime and is not refused"
    assert wait_for(lambda: product.child("uvicorn")).pid != web.pid

    worker = product.child("qcluster")
    theirs = worker.children(recursive=True)
    assert theirs
    worker.kill()
    wait_for(lambda: (again := product.child("qcluster")) and again.pid != worker.pid)
    wait_for(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in theirs))

    server = product.home.postmaster
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: postgres.alive(product.home.cluster) and product.home.postmaster != server)
    wait_for(lambda: product.status("/readyz") == 200)

    product.process.send_signal(signal.SIGINT)
    assert product.finish() == 0
    product.assert_nothing_left()


def test_a_web_process_that_is_killed_before_it_answers_is_started_again(warm):
    product = Product(warm, meanwhile=lambda begun: wait_for(lambda: begun.child("uvicorn")).kill())
    assert product.status("/healthz") == 200
    product.process.send_signal(signal.SIGTERM)
    assert product.finish() == 0
    product.assert_nothing_left()


def test_nothing_outlives_a_killed_supervisor(product):
    product.process.kill()
    product.process.wait()
    wait_for(lambda: not product.everything())
    product.assert_nothing_left()


def test_the_database_outlasts_the_web_process_of_a_killed_supervisor(product):
    web, worker = product.child("uvicorn"), product.child("qcluster")
    web.suspend()  # as if it were long at storing its last answers
    product.process.kill()
    product.process.wait()
    wait_for(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    time.sleep(0.5)
    assert postgres.answers(product.home.cluster)
    again = product.home.popen("-m", "knowsphere.supervisor", PORT=str(product.port))
    assert "held by a process that does not answer" in again.stderr.readline()
    web.resume()
    product.process = again
    product.read_until_ready()
    again.send_signal(signal.SIGTERM)
    assert product.finish() == 0
    product.assert_nothing_left()


def test_a_taken_port_is_a_sentence_and_nothing_starts(warm):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as taken:
        threading.Thread(target=taken.serve_forever, daemon=True).start()
        port = taken.server_port
        done = warm.run("-m", "knowsphere.supervisor", PORT=str(port))
        taken.shutdown()
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 cannot be used" in done.stderr
    assert f"PORT={port + 1}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not postgres.alive(warm.cluster)


@pytest.mark.parametrize(
    ("name", "value"), [("PORT", "eighty"), ("SIGNUP", "maybe"), ("DATABASE_URL", "mysql://a/b"), ("LOG_LEVEL", "loud")]
)
def test_a_wrong_value_is_a_sentence_that_names_the_variable(warm, name, value):
    done = warm.run("-m", "knowsphere.supervisor", **{"PORT": str(free_port()), name: value})
    assert done.returncode == 1
    assert name in done.stderr
    assert "Traceback" not in done.stderr
    assert not postgres.alive(warm.cluster)


def test_a_database_that_does_not_answer_is_a_sentence(warm):
    port = free_port()
    done = warm.run(
        "-m", "knowsphere.supervisor", PORT=str(free_port()), DATABASE_URL=f"postgresql://u@127.0.0.1:{port}/d"
    )
    assert done.returncode == 1
    assert f'The database does not answer: connection failed: connection to server at "127.0.0.1", port {port}' in (
        done.stderr
    )
    assert "Traceback" not in done.stderr


def test_the_client_of_a_request_is_known(warm):
    """Sign-in limits go by address, also where the socket was handed down."""
    script = """
import asyncio, os, socket, sys
import uvicorn
seen = []
async def application(scope, receive, send):
    if scope["type"] == "http":
        seen.append((scope["client"][0], scope["server"][0]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": repr(seen[-1]).encode()})
from knowsphere import supervisor
listener = supervisor.listen("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
options = {"loop": "uvloop", "http": "httptools", "lifespan": "off", "log_level": "critical"}
config = uvicorn.Config(application, fd=listener.fileno(), **options)
uvicorn.Server(config).run()
"""
    server = warm.popen("-c", script)
    connection = http.client.HTTPConnection("127.0.0.1", int(server.stdout.readline()), timeout=20)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"('127.0.0.1', '127.0.0.1')"
    server.terminate()
    server.communicate(timeout=20)


@can_become_nobody
def test_an_ordinary_user_needs_no_more(make_home):
    product = Product(make_home("a folder of 用户", user=NOBODY))
    assert product.status("/readyz") == 200
    running = [product.child("uvicorn"), product.child("qcluster"), psutil.Process(product.home.postmaster)]
    assert {process.uids().real for process in running} == {NOBODY}
    product.process.send_signal(signal.SIGINT)
    assert product.finish() == 0
    product.assert_nothing_left()
