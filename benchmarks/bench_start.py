"""Cold start of the web process: CPU seconds and memory until the first answer.

The floor is a Django project with nothing in it, behind the same uvicorn with the same options.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

from benchmarks.report import Ratio
from knowsphere import supervisor

BARE = """
import django.conf
django.conf.settings.configure(SECRET_KEY="-" * 50, ALLOWED_HOSTS=["*"], ROOT_URLCONF="bare")
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("healthz", lambda request: HttpResponse())]
application = get_asgi_application()
"""
LIMIT_CPU_S = 3.0
LIMIT_MB = 200.0


def until_answer(command: list[str], listener: socket.socket, **variables: str) -> tuple[float, float]:
    """Start a server, wait for its first answer, and return (CPU seconds, resident megabytes)."""
    server = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        pass_fds=(listener.fileno(),),
        cwd=Path(__file__).parent.parent,
    )
    try:
        address = listener.getsockname()[:2]
        while not supervisor.healthy(address):
            if server.poll() is not None:
                raise RuntimeError(f"the server ended with {server.returncode}")
            time.sleep(0.02)
        process = psutil.Process(server.pid)
        times = process.cpu_times()
        return times.user + times.system, process.memory_info().rss / 1e6
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
        listener.close()


def first_page(command: list[str], listener: socket.socket) -> float:
    """Return CPU seconds until the sign-in page has been served, which loads forms, templates and URLs."""
    server = subprocess.Popen(command, pass_fds=(listener.fileno(),), cwd=Path(__file__).parent.parent)
    try:
        host, port = listener.getsockname()[:2]
        while not supervisor.healthy((host, port)):
            time.sleep(0.02)
        connection = http.client.HTTPConnection(host, port, timeout=30)
        connection.request("GET", "/accounts/login/")
        connection.getresponse().read()
        times = psutil.Process(server.pid).cpu_times()
        return times.user + times.system
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
        listener.close()


def web_command(listener: socket.socket) -> list[str]:
    """Return the product's own command for its web process."""
    return supervisor.children(listener)[0].command


def run() -> list[Ratio]:
    """Measure the product and the bare project, each once the disk is warm."""
    folder = Path(os.environ["KNOWSPHERE_HOME"]) / "bare"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bare.py").write_text(BARE)

    def bare() -> tuple[float, float]:
        listener = supervisor.listen("127.0.0.1", 0)
        command = [word.replace("knowsphere.asgi", "bare") for word in web_command(listener)]
        command[command.index("--lifespan") + 1] = "off"
        return until_answer(command, listener, PYTHONPATH=str(folder))

    def ours() -> tuple[float, float]:
        listener = supervisor.listen("127.0.0.1", 0)
        return until_answer(web_command(listener), listener, KNOWSPHERE_PROCESS="web")

    def page() -> float:
        listener = supervisor.listen("127.0.0.1", 0)
        return first_page(web_command(listener), listener)

    ours()
    cpu_s, memory_mb = (min(values) for values in zip(ours(), ours(), strict=True))
    floor_cpu_s, floor_mb = (min(values) for values in zip(bare(), bare(), strict=True))
    return [
        Ratio("cold start of web, CPU, over bare Django", cpu_s, floor_cpu_s, "s", LIMIT_CPU_S / floor_cpu_s),
        Ratio("cold start of web, CPU, over the limit", cpu_s, LIMIT_CPU_S, "s", 1.0),
        Ratio("cold start of web and first page, CPU, over the limit", page(), LIMIT_CPU_S, "s", 1.0),
        Ratio("memory of web, over bare Django", memory_mb, floor_mb, "MB", LIMIT_MB / floor_mb),
        Ratio("memory of web, over the limit", memory_mb, LIMIT_MB, "MB", 1.0),
    ]


if __name__ == "__main__":
    sys.exit("run it with: make bench, or python -m benchmarks start")
