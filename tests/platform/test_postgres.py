"""The embedded PostgreSQL: knowsphere/postgres.py, with real servers in state folders of their own."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import psycopg
import pytest

from knowsphere import postgres, postgres_files
from tests.platform.conftest import NOBODY, can_become_nobody, needs_root

pytestmark = pytest.mark.xdist_group("embedded-server")

NAMES = {
    "plain": "var",
    "very long": "/".join(["a-folder-with-quite-a-long-name"] * 8),
    "spaces and Chinese": "my 'own' 知识库 folder/状态 100%",
}
USERS = [
    pytest.param(None, id="me"),
    pytest.param(NOBODY, id="nobody", marks=can_become_nobody),
]


def wait_until(condition, seconds=15):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_starts_and_starts_again_with_its_rows_wherever_the_project_lies(make_home, name, user):
    home = make_home(name, user)
    home.path.parent.chmod(0o700)

    holder = home.hold()
    home.query("CREATE TABLE kept AS SELECT 42 AS answer")
    home.query("CREATE EXTENSION pg_trgm; CREATE EXTENSION vector")
    assert home.query("SELECT cardinality(show_trgm('检索'))") > 0, "Chinese must not be invisible"
    assert home.query("SHOW listen_addresses") == ""
    assert home.query("SHOW data_checksums") == "on"
    home.let_go(holder)
    assert not postgres.alive(home.cluster)
    assert not list(home.cluster.socket.glob(".s.*")), "no socket stays"

    holder = home.hold()
    assert home.query("SELECT answer FROM kept") == 42
    home.let_go(holder)


def test_only_its_user_reaches_it(home):
    holder = home.hold()
    assert home.cluster.socket.stat().st_mode & 0o777 == 0o700
    assert home.cluster.data.stat().st_mode & 0o777 == 0o700
    home.let_go(holder)


def test_the_last_one_out_stops_it(home):
    first, second = home.hold(), home.hold()
    home.let_go(first)
    assert home.query("SELECT 1") == 1
    home.let_go(second)
    assert not postgres.alive(home.cluster)


def test_a_killed_holder_does_not_count(home):
    killed = home.hold()
    killed.kill()
    killed.wait()
    assert home.query("SELECT 1") == 1, "nobody is left to stop it"
    home.let_go(home.hold())
    assert not postgres.alive(home.cluster)


def test_a_command_that_is_told_to_stop_lets_go(home):
    command = home.popen("manage.py", "shell", "-c", "import time; print('up', flush=True); time.sleep(60)")
    wait_until(lambda: "up" in command.stdout.readline())
    command.terminate()
    assert command.wait(30) == 128 + signal.SIGTERM
    assert not postgres.alive(home.cluster)


def test_a_forked_child_still_needs_it_after_its_parent(home):
    script = """
import os, sys, time
from knowsphere import postgres
postgres.hold()
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("held", flush=True)
"""
    parent = home.popen("-c", script)
    assert parent.stdout.readline() == "held\n"
    parent.wait(30)
    assert home.query("SELECT 1") == 1
    parent.stdin.close()
    home.let_go(home.hold())
    wait_until(lambda: not postgres.alive(home.cluster))


def test_who_is_patient_waits_for_a_child_that_is_just_ending(home):
    script = """
import os, time
from knowsphere import postgres
postgres.hold()
if os.fork() == 0:
    time.sleep(0.7)
    os._exit(0)
postgres.release(patience_s=20)
"""
    assert home.popen("-c", script).wait(60) == 0
    assert not postgres.alive(home.cluster)


def test_two_that_start_at_once_get_one_server(home):
    both = [home.popen("-c", "from knowsphere import postgres; postgres.hold(); input()") for _ in range(2)]
    wait_until(lambda: postgres.alive(home.cluster) and postgres.answers(home.cluster), 60)
    for process in both:
        _, err = process.communicate("\n", timeout=60)
        assert (process.returncode, err) == (0, "")
    assert not postgres.alive(home.cluster)


def test_comes_back_after_its_main_process_is_killed(home):
    holder = home.hold()
    home.query("CREATE TABLE kept AS SELECT 42 AS answer")
    os.kill(home.postmaster, signal.SIGKILL)
    wait_until(lambda: not postgres.alive(home.cluster))

    other = home.hold()

    assert home.query("SELECT answer FROM kept") == 42
    home.let_go(other)
    home.let_go(holder)


def test_children_that_outlive_a_killed_server_do_not_bar_the_next(home):
    """A backend in a loop never notices that its server is gone, and holds its shared memory."""
    holder = home.hold()
    backend = psycopg.connect(host=str(home.cluster.socket), port=postgres.PORT, user="postgres", dbname="knowsphere")
    pid = backend.info.backend_pid

    def loop():
        with pytest.raises(psycopg.OperationalError):
            backend.execute("DO $$ BEGIN WHILE true LOOP END LOOP; END $$")

    busy = threading.Thread(target=loop)
    busy.start()
    wait_until(lambda: home.query(f"SELECT state FROM pg_stat_activity WHERE pid = {pid}") == "active")
    os.kill(home.postmaster, signal.SIGKILL)
    wait_until(lambda: not postgres.alive(home.cluster))
    assert pid in postgres._processes(home.cluster), "the loop must have survived, or this proves nothing"

    began = time.monotonic()
    other = home.hold()

    assert time.monotonic() - began < 20
    assert pid not in postgres._processes(home.cluster)
    busy.join(10)
    assert not busy.is_alive()
    home.let_go(other)
    home.let_go(holder)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_a_zombie_is_not_taken_for_a_running_server(home):
    """Nobody reaps in a container without an init; the pid file then names a process for ever."""
    script = """
import ctypes, os, signal, time
from pathlib import Path
from knowsphere import postgres
ctypes.CDLL(None).prctl(36, 1)  # orphans become our children, and we never wait for them
postgres.hold()
here = postgres.cluster()
pid = postgres._recorded_pid(here)
os.kill(pid, signal.SIGKILL)
while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
    time.sleep(0.02)
assert not postgres.alive(here)
postgres.start(here)
assert postgres.alive(here) and postgres._recorded_pid(here) != pid
assert Path(f"/proc/{pid}").exists(), "it must still be a zombie, or this proves nothing"
print("back", flush=True)
"""
    done = home.run("-c", script)
    assert (done.stdout, done.stderr) == ("back\n", "")


def test_a_pid_file_that_names_another_program_is_no_obstacle(home):
    """After a restart of the machine the number may belong to anybody."""
    home.let_go(home.hold())
    here = home.cluster
    stranger = subprocess.Popen(["sleep", "60"], user=None if here.ids() is None else here.ids()[0])
    try:
        (here.data / "postmaster.pid").write_text(f"{stranger.pid}\n{here.data}\n1\n5432\n{here.socket}\n\n 0 0\n")
        postgres_files.give(here.data / "postmaster.pid", here.ids())
        home.let_go(home.hold())
        assert stranger.poll() is None, "and it is left alone"
    finally:
        stranger.kill()
        stranger.wait()


@needs_root
def test_data_whose_account_got_another_number_are_taken_over(home):
    holder = home.hold()
    home.query("CREATE TABLE kept AS SELECT 42 AS answer")
    home.let_go(holder)
    here = home.cluster
    for path in (here.data.parent, *here.data.parent.rglob("*")):
        os.chown(path, 54321, 54321)

    holder = home.hold()

    assert home.query("SELECT answer FROM kept") == 42
    assert here.data.stat().st_uid == here.ids()[0]
    home.let_go(holder)


@can_become_nobody
def test_root_uses_the_data_that_a_plain_user_made(make_home):
    home = make_home(user=NOBODY)
    holder = home.hold()
    home.query("CREATE TABLE kept AS SELECT 42 AS answer")
    home.user = None

    other = home.hold()
    home.user = NOBODY
    home.let_go(holder)
    assert home.query("SELECT answer FROM kept") == 42
    home.let_go(other)

    home.let_go(home.hold())
    assert home.cluster.data.stat().st_uid == NOBODY


@can_become_nobody
def test_a_folder_of_somebody_else_is_refused_with_a_sentence(make_home):
    home = make_home()
    home.path.parent.chmod(0o755)
    home.user = NOBODY
    done = home.run("manage.py", "check")
    assert done.returncode == 1
    assert "KNOWSPHERE_HOME" in done.stderr
    assert "Traceback" not in done.stderr


def test_data_of_another_version_are_refused_and_left_alone(home):
    home.let_go(home.hold())
    (home.cluster.data / "PG_VERSION").write_text("17\n")
    began = time.monotonic()
    done = home.run("manage.py", "check")
    assert time.monotonic() - began < 20
    assert done.returncode == 1
    assert "belong to PostgreSQL 17" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_cannot_start_says_why(home):
    home.let_go(home.hold())
    shutil.rmtree(home.cluster.data / "global")
    done = home.run("manage.py", "check")
    assert done.returncode == 1
    assert "The end of its log" in done.stderr
    assert "Traceback" not in done.stderr


def test_half_a_cluster_never_stays(home):
    here = home.cluster
    half = here.data.with_name("data.new")
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    postgres_files.give(here.data.parent, here.ids())
    home.let_go(home.hold())
    assert not half.exists()
    assert (here.data / "PG_VERSION").exists()


def test_a_database_url_leaves_the_embedded_server_alone(home):
    done = home.run(
        "-c",
        "from knowsphere import postgres; postgres.hold(); print(postgres.cluster().data.exists())",
        DATABASE_URL="postgresql://u@h/d",
    )
    assert done.stdout == "False\n"


def test_a_socket_path_is_short_enough_for_every_system(home):
    assert len(str(home.cluster.socket / f".s.PGSQL.{postgres.PORT}")) < 100
