"""README's first command, as a newcomer types it: clone, ``make run``, sign in, Ctrl-C.

Only the installed packages are shared with this checkout, by a link: downloading them is not what
this proves. A clone holds what is committed, and that is the point.
"""

import http.cookiejar
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import psutil
import pytest

from knowsphere import environment
from tests.platform.conftest import OURS, Home
from tests.platform.test_supervisor import free_port

pytestmark = [
    pytest.mark.xdist_group("embedded-server"),
    pytest.mark.slow,
    pytest.mark.skipif(not (environment.CHECKOUT / ".git").exists(), reason="not a git checkout"),
    pytest.mark.skipif(not (environment.CHECKOUT / ".venv" / "bin" / "python").exists(), reason="no .venv to link"),
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone of this checkout's last commit, with its packages linked in."""
    folder = tmp_path_factory.mktemp("fresh") / "know sphere"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(environment.CHECKOUT), str(folder)], check=True)
    (folder / ".venv").symlink_to((environment.CHECKOUT / ".venv").resolve())
    for name in ("requirements.txt", "requirements-dev.txt"):
        os.utime(folder / name, (0, 0))  # older than what is installed, as after an install
    yield folder
    Home(folder / "var").clean()
    shutil.rmtree(folder, ignore_errors=True)


class Terminal:
    """``make run`` in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        kept = {name: value for name, value in os.environ.items() if name.removesuffix("_FILE") not in OURS}
        began = time.monotonic()
        self.make = subprocess.Popen(
            ["make", "run"],
            cwd=folder,
            env={**kept, "PORT": str(self.port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.printed = ""
        while "Sign in" not in self.printed:
            line = self.make.stdout.readline()
            assert line, f"make run ended:\n{self.printed}"
            self.printed += line
        self.seconds = time.monotonic() - began

    def ctrl_c(self) -> str:
        """Do what a terminal does: the signal reaches every process of the foreground."""
        os.killpg(self.make.pid, signal.SIGINT)
        rest, _ = self.make.communicate(timeout=40)
        return rest

    def left(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if Path(process.cwd()).is_relative_to(self.folder):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


def sign_in(port: int, email: str, password: str) -> str:
    """Sign in like a browser; return the page that follows."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    address = f"http://127.0.0.1:{port}/accounts/login/"
    page = browser.open(address, timeout=30).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page).group(1)
    form = {"csrfmiddlewaretoken": token, "login": email, "password": password}
    answer = browser.open(address, urllib.parse.urlencode(form).encode(), timeout=30)
    assert "/accounts/login" not in answer.url, "the sign-in was refused"
    return answer.read().decode()


QUESTIONS = [
    ("How large may a file be?", "200 MB", "Uploading documents.md"),
    ("文件最大可以有多大？", "200 MB", "上传文档.md"),
]


def ask(folder: Path, question: str) -> tuple[str, list[str]]:
    """Ask the sample base beside the running server; return the streamed text and the names of its sources."""
    kept = {name: value for name, value in os.environ.items() if name.removesuffix("_FILE") not in OURS}
    done = subprocess.run(
        [".venv/bin/python", "manage.py", "ask", question, "--json"],
        cwd=folder, env=kept, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.splitlines()]
    text = "".join(event["text"] for event in events if event["type"] == "token")
    return text, [source["document"] for event in events if event["type"] == "sources" for source in event["sources"]]


def test_make_run_on_a_fresh_clone_and_again(clone):
    terminal = Terminal(clone)
    try:
        assert f"KnowSphere is at http://127.0.0.1:{terminal.port} " in terminal.printed
        email, password = re.search(r"Sign in as (\S+) with the password (\S+)", terminal.printed).groups()
        assert "Demo" in sign_in(terminal.port, email, password)
        for question, fact, document in QUESTIONS:
            answer, sources = ask(clone, question)
            assert fact in answer
            assert "[[c" in answer, "every fact carries its marker"
            assert document in sources
    finally:
        said = terminal.ctrl_c()
    assert "Traceback" not in said
    assert not terminal.left()

    again = Terminal(clone)
    try:
        assert again.seconds < 30, "ten seconds on a machine that does nothing else"
        assert (email, password) == re.search(r"Sign in as (\S+) with the password (\S+)", again.printed).groups()
        assert "Demo" in sign_in(again.port, email, password)
        assert "pip" not in again.printed, "nothing is installed twice"
    finally:
        again.ctrl_c()
    assert not again.left()


def test_a_clone_is_left_as_it_came(clone):
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", ":!.venv"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert changed.stdout == ""


def test_make_does_nothing_twice(clone):
    for target, words in (("run", ["knowsphere.supervisor"]), ("setup", ["manage.py setup"]), ("test", ["pytest"])):
        command = ["make", "--no-print-directory", "--dry-run", target]  # or a make above us would show
        plan = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=True)
        lines = plan.stdout.strip().splitlines()
        assert len(lines) == 1, lines
        assert words[0] in lines[0]
