"""The demo person and the sample base, with the vectors that are shipped."""

import random
from io import StringIO

import numpy as np
import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command

from apps.knowledge.models import Chunk, ChunkVector, Document, KnowledgeBase
from apps.knowledge.services import sample
from apps.models import gateway
from apps.models.models import Kind
from apps.models.resolution import BUILTIN
from apps.workspaces.models import User, Workspace
from apps.workspaces.services import create_workspace

EMAIL = "demo@knowsphere.local"


def test_the_shipped_vectors_are_of_the_guide_as_it_is_cut_now():
    assert set(sample.load()) == set(sample.wanted()), "run manage.py build_sample"


def test_what_is_shipped_is_of_the_model_as_it_is_now():
    shipped = sample.load()
    picked = random.Random(7).sample(sorted(sample.wanted().items()), 3)
    texts = [text for _key, (text, _posted) in picked]
    vectors, tokens = gateway.embed_with_tokens_now(BUILTIN[Kind.EMBEDDING], texts)
    for (key, (_text, posted)), vector, signs in zip(picked, vectors, tokens, strict=True):
        assert float(vector @ shipped[key].vector.astype(np.float32)) > 0.995, "run manage.py build_sample"
        assert len(shipped[key].signs) == (len(signs) if posted else 0)


def test_what_is_shipped_stays_small():
    assert sample.VECTORS.stat().st_size < 900_000
    assert {one.vector.dtype for one in sample.load().values()} == {np.dtype(np.float16)}


@pytest.fixture
def demo(db, settings, tmp_path, monkeypatch):
    """Return a function that runs the command without any model: what is shipped has to be enough."""
    settings.HOME = tmp_path

    def refuse(*args, **kwargs):
        raise AssertionError("the model was asked")

    monkeypatch.setattr(gateway, "embed_now", refuse)

    def run(**options):
        call_command("demo", stdout=StringIO(), **options)
        return (tmp_path / "secrets" / "demo-password").read_text().strip()

    return run


def test_somebody_can_sign_in_and_ask_at_once(demo, tmp_path, rf):
    password = demo()

    person = authenticate(rf.post("/"), username=EMAIL, password=password)
    assert person is not None
    base = KnowledgeBase.objects.visible_to(person).get()
    documents = Document.objects.visible_to(person)
    assert {document.status for document in documents} == {"indexed"}
    assert {document.name for document in documents} >= {"Getting started.md", "快速上手.md"}
    assert documents.count() == len(sample.pages())
    assert ChunkVector.objects.filter(knowledge_base=base).count() == len(sample.load())
    passages = Chunk.objects.filter(document__knowledge_base=base, level=0)
    assert passages.exclude(tokens=None).count() == passages.count(), "the reranker compares all of them"
    assert (tmp_path / "secrets" / "demo-password").stat().st_mode & 0o777 == 0o600


def test_a_second_run_changes_nothing(demo):
    password = demo()
    before = list(Document.objects.order_by("pk").values_list("pk", "generation", "changed_at"))
    assert demo() == password
    assert list(Document.objects.order_by("pk").values_list("pk", "generation", "changed_at")) == before
    assert (User.objects.count(), Workspace.objects.count(), KnowledgeBase.objects.count()) == (1, 1, 1)


def test_it_stays_away_from_a_server_that_is_in_use(demo, ann, tmp_path):
    create_workspace(name="Acme", owner=ann)
    call_command("demo", if_empty=True, stdout=StringIO())
    assert not User.objects.filter(email=EMAIL).exists()
    assert not (tmp_path / "secrets").exists()


def test_what_the_owner_deleted_stays_deleted(demo):
    demo()
    KnowledgeBase.objects.all().delete()
    demo(if_empty=True)
    assert not KnowledgeBase.objects.exists()


def test_a_run_that_was_cut_short_is_finished_by_the_next(demo, tmp_path, rf):
    demo()
    (tmp_path / "secrets" / "demo-password").unlink()
    Document.objects.filter(name="快速上手.md").delete()

    password = demo(if_empty=True)

    assert authenticate(rf.post("/"), username=EMAIL, password=password)
    assert Document.objects.get(name="快速上手.md").status == "indexed"


def test_a_page_that_was_changed_is_embedded_anew(db, settings, tmp_path, monkeypatch):
    settings.HOME = tmp_path
    monkeypatch.setattr(sample, "load", dict)
    monkeypatch.setattr(sample, "pages", lambda: [sample.Page("New.md", b"# New\n\nA page that nobody shipped.\n")])
    call_command("demo", stdout=StringIO())
    assert Document.objects.get().status == "indexed"
    assert ChunkVector.objects.count() == 1
