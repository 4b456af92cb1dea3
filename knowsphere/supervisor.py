"""One command that runs the whole product on one machine: database, web and worker.

``python -m knowsphere.supervisor`` brings the database up to date, keeps the three alive until it
is told to stop, and leaves nothing behind. A child that dies is started again, after a pause that
grows while it keeps dying. SIGINT and SIGTERM are passed on: web gets time to let answers finish,
the worker to settle its step, the database comes last; a second signal does not wait.

The listening socket is opened here and handed to the web process. So a taken port is found before
anything starts, and while the web process is started again, browsers wait instead of failing.
"""

import ctypes
import errno
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from types import FrameType

from django.core.exceptions import ImproperlyConfigured

from knowsphere import environment, postgres
from knowsphere.postgres_files import ServerUnavailable

GRACE_S = 20
CHECK_EVERY_S = 0.3
READY_TIMEOUT_S = 60
HOLDERS_S = 2.0  # a worker's forked child that was killed just now holds the database a moment longer


@dataclass
class Child:
    """One process that has to be running, and its restarts."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause_s: float = 0.0

    def start(self) -> None:
        """Start it in a session of its own, so that the terminal's Ctrl-C reaches us alone."""
        self.started = time.monotonic()
        parent = os.getpid()
        self.process = subprocess.Popen(
            self.command,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            pass_fds=self.descriptors,
            start_new_session=True,
            preexec_fn=lambda: _die_with(parent),
        )

    @property
    def running(self) -> bool:
        """Whether the process exists."""
        return self.process is not None and self.process.poll() is None

    @property
    def killed(self) -> bool:
        """Whether a signal ended it."""
        return self.process is not None and (self.process.poll() or 0) < 0

    def keep(self) -> None:
        """Start it again if it has ended and its pause is over; a first death has no pause."""
        if self.process is None or self.running:
            return
        age_s = time.monotonic() - self.started
        if age_s > 60:
            self.pause_s = 0.0
        if age_s < self.pause_s:
            return
        self.pause_s = min(max(1.0, self.pause_s * 2), 30.0)
        self.end_group()
        _say(f"{self.name} ended ({_how(self.process.returncode)}); starting it again")
        self.start()

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the process itself; it takes its own children along."""
        if self.process and self.running:
            self.process.terminate()

    def end_group(self) -> None:
        """Kill whatever is left of it and its children."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()


def _die_with(parent: int) -> None:
    """Ask Linux to stop this process if the supervisor is killed; elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before we could ask
            os._exit(1)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def listen(host: str, port: int) -> socket.socket:
    """Open the socket that the web process will serve.

    Raises:
        OSError: the address is taken or not ours.
    """
    [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(2048)
    except OSError:
        opened.close()
        raise
    return opened


def listen_patiently(host: str, port: int) -> socket.socket:
    """Open the socket, waiting where it is only in the way of a web process that is ending.

    After a supervisor was killed its web process keeps the port while it lets answers finish. Such a
    one answers nothing; whoever does answer is there to stay.

    Raises:
        OSError: the address is taken or not ours.
    """
    deadline = time.monotonic() + GRACE_S
    waited = False
    while True:
        try:
            return listen(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline or speaks((local(host), port)):
                raise
        if not waited:
            _say(f"Port {port} is held by a process that does not answer; waiting whether it ends …")
            waited = True
        time.sleep(CHECK_EVERY_S)


def local(host: str) -> str:
    """Return where to reach what listens on ``host`` of this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared, not bound)


def speaks(address: tuple[str, int]) -> bool:
    """Whether somebody answers at an address, in whatever language."""
    try:
        with socket.create_connection(address, timeout=1) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            connection.recv(1)
    except OSError:
        return False
    return True


def web_command(*where: str) -> list[str]:
    """Return the command of the web process, listening where the uvicorn options in ``where`` say."""
    return [
        sys.executable, "-m", "uvicorn", "knowsphere.asgi:application", *where,
        "--ws", "websockets-sansio", "--loop", "uvloop", "--http", "httptools", "--ws-per-message-deflate", "false",
        "--ws-max-size", "2097152",
        "--forwarded-allow-ips", ",".join(environment.networks("FORWARDED_ALLOW_IPS", "127.0.0.1")),
        "--lifespan", "on", "--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "5",
    ]  # fmt: skip


def worker_command() -> list[str]:
    """Return the command of the worker."""
    return [sys.executable, "manage.py", "qcluster"]


def children(listener: socket.socket) -> list[Child]:
    """Return what runs beside the database."""
    descriptor = listener.fileno()
    return [
        Child("web", web_command("--fd", str(descriptor)), {"KNOWSPHERE_PROCESS": "web"}, (descriptor,)),
        Child("worker", worker_command(), {"KNOWSPHERE_PROCESS": "worker"}),
    ]


def healthy(address: tuple[str, int]) -> bool:
    """Whether the web process answers /healthz."""
    connection = http.client.HTTPConnection(*address, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Supervisor:
    """Runs the children until a signal."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.children = children(listener)
        self.signals = 0

    def on_signal(self, signum: int, frame: FrameType | None) -> None:
        """Count; the loops look at the number."""
        self.signals += 1

    def stopping(self) -> bool:
        """Whether we were told to stop."""
        return self.signals > 0

    def run(self) -> int:
        """Start, watch, stop; return the exit code."""
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sign, self.on_signal)
        postgres.hold()
        try:
            if self.stopping() or not self.set_up():
                return 0 if self.stopping() else 1
            for child in self.children:
                child.start()
            if not self.wait_until_ready():
                return 0 if self.stopping() else 1
            while not self.stopping():
                for child in self.children:
                    child.keep()
                self.keep_database()
                time.sleep(CHECK_EVERY_S)
            return 0
        finally:
            self.stop()

    def set_up(self) -> bool:
        """Migrate and make what a first start needs; False if that failed, with its reason printed."""
        step = Child("set-up", [sys.executable, "manage.py", "setup"])
        step.start()
        while step.running and not self.stopping():
            time.sleep(0.05)
        if step.running:
            step.end_group()
        return step.process is not None and step.process.returncode == 0

    def wait_until_ready(self) -> bool:
        """Wait for the web process's first answer, then say where it is."""
        bound, port = self.listener.getsockname()[:2]
        host = local(bound)
        web = self.children[0]
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not healthy((host, port)):
            if self.stopping():
                return False
            if web.killed:  # not its own doing, so it is worth another start
                web.keep()
            if (not web.running and not web.killed) or time.monotonic() > deadline:
                _say("The web process did not start; its reason stands above. Nothing was lost.")
                return False
            time.sleep(0.1)
        address = environment.text("SITE_URL") or f"http://{f'[{host}]' if ':' in host else host}:{port}"
        print(f"\nKnowSphere is at {address}   (Ctrl-C stops it)\n{how_to_sign_in()}", flush=True)
        return True

    def keep_database(self) -> None:
        """Start the embedded server again if it has died."""
        if not postgres.in_use():
            return
        here = postgres.cluster()
        if postgres.alive(here):
            return
        _say("the database ended; starting it again")
        try:
            postgres.start(here, give_up=self.stopping)
        except ServerUnavailable as error:
            _say(f"{error}\nTrying again.")

    def stop(self) -> None:
        """Stop the children in order, then the database; kill what does not go in time."""
        _say("stopping …")
        patient = max(1, self.signals)
        for child in self.children:
            child.ask_to_stop()
        deadline = time.monotonic() + GRACE_S
        while any(c.running for c in self.children) and time.monotonic() < deadline and self.signals <= patient:
            time.sleep(0.05)
        for child in self.children:
            child.end_group()
        self.listener.close()
        postgres.release(patience_s=HOLDERS_S)


def how_to_sign_in() -> str:
    """Return a line on how to get in: as the demo person where there is one."""
    password = environment.home() / "secrets" / "demo-password"
    try:
        return f"Sign in as demo@knowsphere.local with the password {password.read_text().strip()}"
    except OSError:
        return "Sign in, or sign up for an account of your own."


def main() -> int:
    """Run until a signal; return the exit code."""
    os.chdir(environment.CHECKOUT)
    try:
        host = environment.text("HOST", "127.0.0.1")
        port = environment.whole("PORT", 8000, least=1, most=65535)
        try:
            listener = listen_patiently(host, port)
        except OSError as error:
            _say(
                f"Port {port} on {host} cannot be used: {error.strerror}. "
                f"Is KnowSphere running already? Stop what uses it, or choose another: PORT={port + 1} make run"
            )
            return 1
        return Supervisor(listener).run()
    except (ImproperlyConfigured, ServerUnavailable) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:  # while it still waited for its port
        return 130


if __name__ == "__main__":
    sys.exit(main())
