"""One command that runs the whole product on one machine: database, web and worker.

``python -m knowsphere.supervisor`` keeps the three alive until it is told to stop. A child that
dies is started again, after a pause that grows while it keeps dying. SIGINT and SIGTERM are passed
on: web gets time to let answers finish, the worker to settle its step, the database comes last.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from types import FrameType

from knowsphere import environment, postgres

GRACE_S = 20
CHECK_EVERY_S = 0.5


@dataclass
class Child:
    """One process that has to be running, and its restarts."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause_s: float = 0.0
    extra: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Start it in a session of its own, so that the terminal's Ctrl-C reaches us alone."""
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            env={**os.environ, **self.extra},
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )

    def keep(self) -> None:
        """Start it again if it has ended and its pause is over."""
        if self.process is None or self.process.poll() is None:
            return
        now = time.monotonic()
        if now - self.started > 60:
            self.pause_s = 0.0
        if now - self.started < self.pause_s:
            return
        self.pause_s = min(max(1.0, self.pause_s * 2), 30.0)
        self.end_group()
        print(f"{self.name} ended with {self.process.returncode}; starting it again", file=sys.stderr, flush=True)
        self.start()

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the process itself; it takes its own children along."""
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def end_group(self) -> None:
        """Kill whatever is left of its process group."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()


def _die_with_parent() -> None:
    """Ask Linux to kill this process if the supervisor is killed; elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)


def children(port: int) -> list[Child]:
    """Return what runs beside the database."""
    web = [
        sys.executable, "-m", "uvicorn", "knowsphere.asgi:application", "--host", environment.text("HOST", "127.0.0.1"),
        "--port", str(port), "--ws", "websockets-sansio", "--loop", "uvloop", "--http", "httptools",
        "--ws-per-message-deflate", "false", "--lifespan", "on", "--no-access-log", "--log-level", "warning",
        "--timeout-graceful-shutdown", "5",
    ]  # fmt: skip
    worker = [sys.executable, "manage.py", "qcluster"]
    return [Child("web", web), Child("worker", worker)]


def main() -> int:
    """Run until a signal; return the exit code."""
    os.chdir(environment.CHECKOUT)
    port = environment.whole("PORT", 8000, least=1, most=65535)
    stopping = False

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    postgres.hold()
    running = children(port)
    try:
        for child in running:
            child.start()
        print(f"KnowSphere is at http://127.0.0.1:{port}   (Ctrl-C stops it)", flush=True)
        while not stopping:
            for child in running:
                child.keep()
            if postgres.in_use() and not postgres.alive():
                print("the database ended; starting it again", file=sys.stderr, flush=True)
                postgres.start(postgres.cluster())
            time.sleep(CHECK_EVERY_S)
    finally:
        print("stopping…", flush=True)
        for child in running:
            child.ask_to_stop()
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline and any(c.process and c.process.poll() is None for c in running):
            time.sleep(0.1)
        for child in running:
            child.end_group()
        postgres.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
