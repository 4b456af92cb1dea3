"""The sandbox: no network and no programs by each layer alone; limits that end a file and nothing else."""

import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import psutil
import pytest

from apps.knowledge.errors import Cancelled, ParseMemory, ParseTimeout
from apps.knowledge.parsers import DOCX
from apps.knowledge.sandbox import reader
from apps.knowledge.sandbox.limits import Limits
from tests.knowledge.files import docx, p

TRY_OUT = """
import socket, subprocess, sys
from apps.knowledge.sandbox import isolation
assert isolation.{layer}() is not False, "not permitted here"
connect = lambda: socket.create_connection(("127.0.0.1", {port}), 2)
start = lambda: subprocess.run(["/bin/true"], check=True)
for act in (connect, start):
    try:
        act()
    except OSError as error:
        print("refused")
    else:
        print("done")
"""


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("layer", "outcome"),
    [
        ("leave_network", ["refused", "done"]),
        ("forbid_system_calls", ["refused", "refused"]),
        ("forbid_in_python", ["refused", "refused"]),
    ],
)
def test_each_layer_alone_keeps_the_network_shut(listening, layer, outcome):
    script = TRY_OUT.format(layer=layer, port=listening)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    if "not permitted here" in done.stderr:
        pytest.skip(f"this machine does not permit {layer}")
    assert done.stdout.split() == outcome, done.stderr


def test_a_child_cannot_be_talked_into_another_architecture_or_a_socket_later():
    script = (
        "from apps.knowledge.sandbox import isolation\nimport os, socket\n"
        "if not isolation.forbid_system_calls(): raise SystemExit(77)\n"
        "for act in (lambda: socket.socket(socket.AF_UNIX), lambda: os.execv('/bin/true', ['true'])):\n"
        "    try: act()\n"
        "    except PermissionError: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    if done.returncode == 77:
        pytest.skip("no seccomp here")
    assert done.stdout.split() == ["refused", "refused"], done.stderr


def test_no_file_is_left_but_its_own_code(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    script = (
        "from apps.knowledge.sandbox import isolation\n"
        f"held = open({str(secret)!r})\n"
        "if not isolation.forbid_files(isolation.own_code()): raise SystemExit(77)\n"
        f"for path, mode in (({str(secret)!r}, 'r'), ('/etc/passwd', 'r'), ({str(tmp_path / 'new')!r}, 'w')):\n"
        "    try: open(path, mode)\n"
        "    except PermissionError: print('refused')\n"
        "import wave, lxml.etree\n"
        "print(held.read())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("no Landlock here")
    assert done.stdout.split() == ["refused", "refused", "refused", "secret"], done.stderr


def read(data, content_type="text/plain", **more):
    return reader.read(io.BytesIO(data), content_type, **more)


LONG_HTML = b"<html><body>" + b"<p>some <b>text</b> in a paragraph</p>" * 60_000
LONGER_WORD = docx("".join(p(f"text {at * 7919 % 1_000_003}") for at in range(120_000)))
LONG_WORD = docx(p("some text") * 150_000)


@pytest.mark.parametrize(("data", "kind"), [(LONG_HTML, "text/html"), (LONG_WORD, DOCX)])
def test_a_file_that_takes_too_long_ends_and_the_next_is_read(data, kind):
    began = time.monotonic()
    with pytest.raises(ParseTimeout):
        read(data, kind, limits=Limits(wall_s=0.4))
    assert time.monotonic() - began < 5
    assert read(b"next").markdown == "next"


@pytest.mark.parametrize(("data", "kind"), [(LONG_HTML, "text/html"), (LONGER_WORD, DOCX)])
def test_a_file_that_wants_too_much_memory_ends_and_the_next_is_read(data, kind):
    reader.close()  # the text reader keeps the limits it was started with
    with pytest.raises(ParseMemory):
        read(data, kind, limits=Limits(memory_bytes=100 << 20))
    reader.close()
    assert read(b"next").markdown == "next"


def test_one_process_reads_many_texts_and_a_binary_file_gets_its_own():
    read(b"first")
    sandbox = reader._channel.process.pid
    (text_reader,) = psutil.Process(sandbox).children()
    for _ in range(20):
        read(b"again")
    read(docx(p("x")), DOCX)
    assert psutil.Process(sandbox).children() == [text_reader]


def test_a_killed_sandbox_is_started_again():
    read(b"first")
    os.kill(reader._channel.process.pid, signal.SIGKILL)
    assert read(b"second").markdown == "second"


def test_reading_stops_when_the_check_says_so():
    def check():
        raise Cancelled

    began = time.monotonic()
    with pytest.raises(Cancelled):
        read(LONG_WORD, DOCX, check=check)
    assert time.monotonic() - began < 3
    assert read(b"next").markdown == "next"


def test_nothing_is_left_when_the_process_that_read_is_gone():
    script = (
        "import io, os, signal, django\ndjango.setup()\nfrom apps.knowledge.sandbox import reader\n"
        "reader.read(io.BytesIO(b'x'), 'text/plain')\nprint(reader._channel.process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "knowsphere.settings"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment)
    sandbox = int(done.stdout)
    deadline = time.monotonic() + 5
    while psutil.pid_exists(sandbox) and psutil.Process(sandbox).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_threads_take_turns():
    found = []
    threads = [
        threading.Thread(target=lambda at=at: found.append((at, read(f"text {at}".encode()).markdown)))
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(at, f"text {at}") for at in range(8)]
