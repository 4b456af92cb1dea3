"""Real files go in while worker, web and database are killed at random: each ends as it would have in peace.

``make soak`` takes 200 files, the suite 40. SOAK_SEED chooses files, victims and pauses. Without public
test data the files are this repository's own documents.
"""

import csv
import http.client
import json
import os
import random
import threading
import time
from collections import deque
from pathlib import Path

import psutil
import psycopg
import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from tests.platform.test_supervisor import Product

FILES = int(os.environ.get("SOAK_FILES", "40"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
KILLS = max(3, FILES // 10)
PATIENCE_S = 240 + 12 * FILES
LARGEST = 2 << 20  # a file that takes a minute to read alone says no more than one that takes a second

pytestmark = [pytest.mark.xdist_group("embedded-server"), pytest.mark.slow, pytest.mark.timeout(2 * PATIENCE_S)]

SET_UP = """
import json, django
django.setup()
from apps.knowledge import services
from apps.workspaces.models import User
from apps.workspaces.services import create_api_key, create_workspace
person = User.objects.create_user("soak@example.com")
place = create_workspace(name="Soak", owner=person)
base = services.create_knowledge_base(workspace=place, name="Soak", actor=person)
_, key = create_api_key(workspace=place, name="Soak", scopes=["knowledge:read", "knowledge:write"], actor=person)
print(json.dumps({"base": str(base.pk), "key": key}))
"""

# Runs when all is quiet. Every document is read and cut once more, alone, and what is stored must be that.
CHECK = """
import json, sys, django
django.setup()
from apps.knowledge.errors import DocumentFailure
from apps.knowledge.extraction import extract
from apps.knowledge.index_text import EMBEDDED_LEVELS, POSTED_LEVELS, lexical_input, postings
from apps.knowledge.models import Chunk, ChunkVector, Document, Posting, StagedVector
from apps.knowledge.services.previewing import chunk_preview
wrong, ends = [], {}
for document in Document.objects.filter(knowledge_base=sys.argv[1]).select_related("knowledge_base"):
    chunks = list(Chunk.objects.filter(document=document).order_by("level", "ordinal"))
    vectors = set(ChunkVector.objects.filter(document=document).values_list("chunk_id", flat=True))
    posted = set(Posting.objects.filter(document_id=document.pk).values_list("chunk_id", flat=True))
    lost = document.attempts.filter(error_code="worker_lost").count()
    ends[document.name] = [document.status, document.error_code, lost]
    def says(what):
        wrong.append(f"{document.name}: {what}")
    if document.status == "indexed":
        base = document.knowledge_base
        drafts = chunk_preview(
            document=document, chunker=base.chunker, chunker_settings=base.chunker_settings
        )
        drafts = sorted((draft.level, draft.ordinal, draft.text) for draft in drafts)
        if drafts != [(chunk.level, chunk.ordinal, chunk.text) for chunk in chunks]:
            says(f"{len(chunks)} chunks stored, {len(drafts)} cut in peace, or others")
        if any(chunk.generation != document.generation for chunk in chunks):
            says("two generations")
        if vectors != {chunk.pk for chunk in chunks if chunk.level in EMBEDDED_LEVELS}:
            says("vectors are not those of its chunks")
        worded = {
            chunk.pk
            for chunk in chunks
            if chunk.level in POSTED_LEVELS and postings(lexical_input(document.name, chunk.heading, chunk.text))
        }
        if posted != worded:
            says("postings are not those of its chunks")
        if document.chunk_count != sum(chunk.level == 0 for chunk in chunks):
            says("its number of chunks is not true")
        if document.error_code or StagedVector.objects.filter(document=document).exists():
            says("something is left of an attempt")
        continue
    if chunks or vectors or posted:
        says("failed, and something of it can be found")
    if document.status not in ("error_parsing", "error_indexing"):
        says(f"it never ended: {document.status}")
    elif document.error_code == "worker_lost":
        if lost < 3:
            says("set aside too early")
    else:
        try:
            with document.file.open("rb") as original:
                text = extract(original, document.content_type).markdown
            says(f"{document.error_code}, but in peace it gives {len(text)} characters")
        except DocumentFailure as failure:
            if failure.code != document.error_code:
                says(f"{document.error_code}, but in peace {failure.code}")
print(json.dumps({"wrong": wrong, "ends": ends}))
"""


def wanted():
    """Choose the files: (name, bytes), each different."""
    chance = random.Random(SEED)
    folder = os.environ.get("KNOWSPHERE_TEST_DATA", "")
    if folder:
        data = Path(folder)
        rows = csv.DictReader((data / "documents/index.tsv").open(), delimiter="\t")
        paths = sorted(data / "documents" / row["path"] for row in rows)
        files = {path.read_bytes(): path.name for path in paths if path.stat().st_size <= LARGEST}
        corpus = (data / "retrieval/xquad_zh/corpus.jsonl").open()
        texts = {text.encode(): f"{found['id']}.md" for line in corpus if (text := (found := json.loads(line))["text"])}
        chosen = chance.sample(sorted(files.items()), min(len(files), FILES * 2 // 3))
        chosen += chance.sample(sorted(texts.items()), FILES - len(chosen))
    else:
        own = [path for top in ("docs", "apps") for path in (settings.BASE_DIR / top).rglob("*.md")]
        files = {path.read_bytes(): f"{path.parent.name}-{path.name}" for path in sorted(own)}
        chosen = chance.sample(sorted(files.items()), min(len(files), FILES))
    chance.shuffle(chosen)
    return [(name, content) for content, name in chosen]


class Killer(threading.Thread):
    """Kills something within two seconds of being told, ``KILLS`` times, while files go on coming in."""

    def __init__(self, product):
        super().__init__(daemon=True)
        self.product = product
        self.chance = random.Random(SEED)
        self.done = []
        self.due = threading.Semaphore(0)

    def run(self):
        while len(self.done) < KILLS:
            self.due.acquire()
            time.sleep(self.chance.uniform(0, 2))
            what = self.chance.choice(["worker", "one of the workers", "web", "database"])
            while not self.killed(what):
                time.sleep(0.2)  # it is not there just now: something killed before has not come back yet
            self.done.append(what)

    def killed(self, what):
        try:
            self.kill(what)
        except (OSError, psutil.Error, ValueError, IndexError, AttributeError):
            return False
        return True

    def kill(self, what):
        if what == "database":
            os.kill(self.product.home.postmaster, 9)
        elif what == "web":
            self.product.child("uvicorn").kill()
        else:
            worker = self.product.child("qcluster")
            whole = [worker] if what == "worker" else worker.children(recursive=True)
            self.chance.choice(whole).kill()


class Client:
    """Sends files through the API, again and again until each has been answered."""

    def __init__(self, product, base, key):
        self.port, self.key = product.port, key
        self.path = f"/api/v1/knowledge-bases/{base}/documents"

    def send(self, name, content, until):
        """Return the status and the answer."""
        body = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile(name, content)})
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": MULTIPART_CONTENT}
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            try:
                connection.request("POST", self.path, body, headers)
                response = connection.getresponse()
                status, answer = response.status, json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError):
                status, answer = 0, {}
            finally:
                connection.close()
            if status in (200, 201, 202) or (400 <= status < 500 and status != 429):
                return status, answer
            assert time.monotonic() < until, (name, status, answer)
            time.sleep(0.3)


def open_documents(home, base):
    sql = f"SELECT count(*) FROM knowledge_document WHERE knowledge_base_id = '{base}' AND status NOT IN "
    try:
        return home.query(sql + "('indexed', 'error_parsing', 'error_indexing')")
    except psycopg.Error:
        return None


def test_every_file_ends_as_it_would_have_in_peace(make_home, vendor):
    home = make_home()
    done = home.run("manage.py", "setup", wait_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    model = {"EMBEDDING_MODEL": "scripted-embedding", "EMBEDDING_API_KEY": "key", "EMBEDDING_BASE_URL": vendor.url}
    product = Product(home, DJANGO_SETTINGS_MODULE="knowsphere.settings", **model)
    said: deque[str] = deque(maxlen=60)  # a pipe that nobody empties would stop whoever writes into it
    threading.Thread(target=lambda: said.extend(product.process.stderr), daemon=True).start()
    until = time.monotonic() + PATIENCE_S
    made = home.run("-c", SET_UP, wait_s=PATIENCE_S, DJANGO_SETTINGS_MODULE="knowsphere.settings")
    assert made.returncode == 0, made.stderr
    place = json.loads(made.stdout.splitlines()[-1])
    files = wanted()
    killer = Killer(product)
    killer.start()
    client = Client(product, **place)
    answers = {}
    for number, (name, content) in enumerate(files):
        if number * KILLS // len(files) > (number - 1) * KILLS // len(files):
            killer.due.release()
        answers[name] = client.send(name, content, until)
    while killer.is_alive() or open_documents(home, place["base"]) != 0:
        assert product.process.poll() is None, "".join(said)
        assert time.monotonic() < until, (killer.done, open_documents(home, place["base"]), "".join(said))
        time.sleep(0.5)
    checked = home.run(
        "-c", CHECK, place["base"], wait_s=PATIENCE_S, DJANGO_SETTINGS_MODULE="knowsphere.settings", **model
    )
    assert checked.returncode == 0, checked.stderr[-3000:]
    found = json.loads(checked.stdout.splitlines()[-1])
    refused = {name: answer["code"] for name, (status, answer) in answers.items() if status >= 400}
    ends = found["ends"]
    print(f"seed {SEED}, {len(files)} files, killed {killer.done}, refused {refused}, ended {ends}")
    assert found["wrong"] == []
    assert all(refused.values())
    assert len(ends) + len(refused) == len(files)
    assert len(killer.done) == KILLS
    assert sum(status == "indexed" for status, *_ in ends.values()) > len(files) // 2
    product.process.terminate()
    assert product.process.wait(60) == 0
