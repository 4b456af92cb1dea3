"""A base moved to another embedding model: the old one answers until the last passage is embedded."""

import psycopg
import pytest
from django.db import OperationalError, ProgrammingError, connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient

from apps.common.errors import InvalidInput
from apps.knowledge import services
from apps.knowledge.errors import JobActive
from apps.knowledge.models import Chunk, ChunkVector, Document, Job, KnowledgeBase, NextVector
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import jobs, moving
from apps.knowledge.services.jobs import advance_moves, cancel_job
from apps.models.models import ModelConfig
from apps.workspaces.services import Subject, share
from tests.vendor import Reply

pytestmark = pytest.mark.django_db(transaction=True)
LONG = "\n\n".join(f"## Part {at}\n\n" + f"The heating of house {at} is off in summer. " * 12 for at in range(40))
OTHER = "openai_compatible:other"


@pytest.fixture
def other(acme, vendor, settings):
    """Another embedding model of the workspace, of 8 dimensions."""
    settings.OUTBOUND_ALLOW = [vendor.url.split("/")[2]]
    ModelConfig.objects.create(
        workspace=acme, kind="embedding", name="other", base_url=vendor.url, configuration={"dimensions": 8}
    )
    vendor.models.append("other")

    def answer(request):
        if request.body.get("model") in ("other", "third"):
            return Reply(vectors=[[1.0, *[0.0] * 7] for _ in request.body["input"]])
        return Reply()

    vendor.otherwise = answer
    return vendor


def dimensions():
    return {len(vector) for vector in ChunkVector.objects.values_list("embedding", flat=True)}


def turns():
    """Advance until nothing is left to do."""
    for _ in range(50):
        if not advance_moves():
            return
    raise AssertionError("it never ends")


def test_all_switch_at_once_and_nothing_is_searched_in_between(ingest, other, handbook, ann, monkeypatch):
    document = ingest(LONG)
    handbook.refresh_from_db()
    before = (handbook.embedding_model, dimensions(), ChunkVector.objects.count())
    chunks = set(Chunk.objects.values_list("pk", flat=True))
    job = services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    with pytest.raises(JobActive):
        services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    monkeypatch.setattr(moving, "SLICE_S", 0.0)  # one look, one batch at most
    advance_moves()
    monkeypatch.setattr(moving, "SLICE_S", 10.0)
    meanwhile = ingest("# Late\n\nAdded while the base is moving.", "late.md")
    handbook.refresh_from_db()
    assert (handbook.embedding_model, dimensions()) == before[:2]
    assert meanwhile.status == "indexed"
    turns()
    handbook.refresh_from_db()
    job.refresh_from_db()
    assert (handbook.embedding_model, handbook.dimensions, handbook.next_model) == (OTHER, 8, "")
    assert (job.status, job.position) == ("succeeded", job.total)
    assert dimensions() == {8}
    assert ChunkVector.objects.count() == Chunk.objects.count()
    assert chunks < set(ChunkVector.objects.values_list("chunk_id", flat=True))  # the same passages, by id
    assert not NextVector.objects.exists()
    document.refresh_from_db()
    assert document.metadata["indexed_as"] == [document.name, OTHER]
    assert (document.generation, document.status, document.failed_chunks) == (1, "indexed", 0)
    services.reindex_document(document=document, actor=ann)
    asked = len(other.requests)
    assert services.ingest_document(document.pk) == "indexed"
    assert len(other.requests) == asked  # its vectors are known again


async def test_search_finds_before_and_after(ingest, other, handbook, ann):
    from apps.common.database import in_db

    await in_db(lambda: ingest(LONG))
    first = await search(ann, "heating summer", knowledge_bases=[handbook.pk], top_k=3)
    await in_db(lambda: services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann))
    await in_db(turns)
    second = await search(ann, "heating summer", knowledge_bases=[handbook.pk], top_k=3)
    assert len(first.passages) == len(second.passages) == 3
    assert "vector" in second.passages[0].ranks


@pytest.mark.parametrize("calls", [1, 2])  # the probe alone, or the first passages too
def test_a_model_that_fails_leaves_the_old_one_and_another_try_goes_on(ingest, other, handbook, ann, calls):
    ingest(LONG)
    old = KnowledgeBase.objects.get().embedding_model
    whole, answered = other.otherwise, []

    def answer(request):
        if request.body.get("model") == "other" and len(answered) >= calls:
            return Reply(status=400, error="no more")
        answered.append(request)
        return whole(request)

    other.otherwise = answer
    job = services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    turns()
    job.refresh_from_db()
    assert (job.status, KnowledgeBase.objects.get().embedding_model) == ("failed", old)
    assert job.error_code == "model_refused"
    assert dimensions() != {8}
    kept = NextVector.objects.count()
    assert bool(kept) == (calls > 1)
    other.otherwise = whole
    handbook.refresh_from_db()
    services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    assert NextVector.objects.count() == kept
    turns()
    assert KnowledgeBase.objects.get().embedding_model == OTHER


def test_stopped_it_leaves_nothing_behind(ingest, other, handbook, ann):
    ingest(LONG)
    before = list(ChunkVector.objects.order_by("pk").values_list("pk", flat=True))
    job = services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    job.refresh_from_db()
    cancel_job(job=job, actor=ann)
    turns()
    base = KnowledgeBase.objects.get()
    assert (base.next_model, base.next_dimensions, NextVector.objects.count()) == ("", None, 0)
    assert list(ChunkVector.objects.order_by("pk").values_list("pk", flat=True)) == before
    with pytest.raises(InvalidInput):
        services.move_to_model(knowledge_base=base, model=base.embedding_model, actor=ann)
    assert Job.objects.filter(kind="embed").count() == 1
    assert Document.objects.get().status == "indexed"


@pytest.mark.parametrize("then", ["", OTHER, "openai_compatible:third"])
def test_what_comes_too_late_for_a_move_that_was_stopped_is_in_no_other(
    ingest, other, handbook, ann, acme, monkeypatch, in_thread, then
):
    """Stopped, and another begun, while the model embeds for the first."""
    ingest(LONG)
    ModelConfig.objects.create(
        workspace=acme, kind="embedding", name="third", base_url=other.url, configuration={"dimensions": 8}
    )
    other.models.append("third")
    stopped = services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    stopped = Job.objects.select_related("knowledge_base").get(pk=stopped.pk)
    old = KnowledgeBase.objects.get().embedding_model
    real, began = moving.gateway.embed_with_tokens_now, []

    def embed(*args, **more):
        cancel_job(job=Job.objects.get(pk=stopped.pk), actor=ann)
        if then:
            base = KnowledgeBase.objects.get()
            began.append(services.move_to_model(knowledge_base=base, model=then, actor=ann))
            other_worker = in_thread(lambda: began.append(moving.advance(began[0])))
            other_worker.join(20)
        return real(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(moving.gateway, "embed_with_tokens_now", embed)
        assert not moving.advance(stopped)
    assert NextVector.objects.count() == 0
    assert began[1:] == ([False] if then else [])  # one worker at a time in a base
    turns()
    assert KnowledgeBase.objects.get().embedding_model == (then or old)


def test_who_manages_a_base_moves_it_to_a_model_that_they_may_choose(ingest, other, handbook, ann, bea, acme):
    ingest("# A\n\nShort.")
    ModelConfig.objects.create(kind="embedding", name="other", base_url=other.url, configuration={"dimensions": 8})
    restricted = ModelConfig.objects.get(workspace=acme)  # called before the operator's of the same name
    restricted.restricted = True
    restricted.save()
    share(row=handbook, subject=Subject(user=bea), level="manage", actor=ann)
    handbook.refresh_from_db()
    with pytest.raises(InvalidInput) as refused:
        services.move_to_model(knowledge_base=handbook, model=OTHER, actor=bea)
    with pytest.raises(InvalidInput) as unknown:
        services.move_to_model(knowledge_base=handbook, model="openai_compatible:none", actor=bea)
    assert refused.value.details == unknown.value.details
    assert not Job.objects.filter(kind="embed").exists()
    share(row=restricted, subject=Subject(user=bea), level="read", actor=ann)
    services.move_to_model(knowledge_base=handbook, model=OTHER, actor=bea)
    turns()
    assert KnowledgeBase.objects.get().embedding_model == OTHER


def test_how_far_it_is_is_counted_on_and_not_anew_with_each_batch(ingest, other, handbook, ann, monkeypatch):
    ingest(LONG)
    monkeypatch.setattr(moving, "BATCH", 4)
    job = services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    shown, real = [], moving._note

    def note(*args):
        with CaptureQueriesContext(connection) as queries:
            going = real(*args)
        assert not [query for query in queries if "count(" in query["sql"].lower()]
        shown.append(Job.objects.get(pk=job.pk).position)
        assert shown[-1] == NextVector.objects.count()
        return going

    monkeypatch.setattr(moving, "_note", note)
    turns()
    job.refresh_from_db()
    assert len(shown) > 3
    assert shown[-1] == job.position == job.total


def test_a_document_that_meets_the_switch_is_indexed_with_the_new_model_at_once(
    add, ingest, other, handbook, ann, monkeypatch
):
    ingest(LONG)
    services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    late = add("# Late\n\nEmbedded with the old model while the base is switched.", "late.md")
    real, switched = moving.gateway.embed_with_tokens_now, []

    def embed(*args, **more):
        found = real(*args, **more)
        if not switched:
            switched.append(True)
            turns()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(moving.gateway, "embed_with_tokens_now", embed)
        assert services.ingest_document(late.pk) == "parsed"
    late.refresh_from_db()
    assert (late.lease_until, late.error_code, late.generation) == (None, "", 0)
    stopped = late.attempts.get(step="index")
    assert (stopped.outcome, stopped.error_code) == ("cancelled", "embedding_switched")
    assert services.take_turn() == f"{late.pk} indexed"  # no lease to wait for
    late.refresh_from_db()
    assert late.metadata["indexed_as"] == [late.name, OTHER]
    assert dimensions() == {8}


@pytest.fixture
def failed(ingest, other, handbook, ann):
    """A move that failed after some passages."""
    ingest(LONG)
    whole, answered = other.otherwise, []

    def answer(request):
        if request.body.get("model") == "other" and len(answered) > 1:
            return Reply(status=400, error="no more")
        answered.append(request)
        return whole(request)

    other.otherwise = answer
    job = services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    turns()
    other.otherwise = whole
    job.refresh_from_db()
    assert job.status == "failed"
    return job


@pytest.mark.parametrize("way", ["page", "api"])
def test_a_move_that_failed_says_why_and_is_put_away(failed, client, handbook, ann, acme, way):
    client.force_login(ann)
    api = APIClient()
    api.force_login(ann)
    card = client.get(reverse("knowledge:configure-chunker", args=[acme.slug, handbook.pk])).content.decode()
    listed = client.get(reverse("knowledge:list-jobs", args=[acme.slug, handbook.pk])).content.decode()
    for shown in (card, listed):
        assert "The model other refused the request" in shown
    assert api.get(f"/api/v1/jobs/{failed.pk}/").json()["error"]["code"] == "model_refused"
    assert "stays with its embedding model. The model other refused" in jobs.told(failed)
    if way == "page":
        client.post(reverse("knowledge:dismiss-move", args=[acme.slug, handbook.pk]))
    else:
        assert api.delete(f"/api/v1/knowledge-bases/{handbook.pk}/embedding-model/").status_code == 204
    handbook.refresh_from_db()
    assert (handbook.next_model, NextVector.objects.count()) == ("", 0)
    card = client.get(reverse("knowledge:configure-chunker", args=[acme.slug, handbook.pk])).content.decode()
    assert "The move to" not in card
    services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)
    with pytest.raises(JobActive):  # one that goes on is cancelled, not put away
        services.dismiss_move(knowledge_base=handbook, actor=ann)
    turns()
    assert KnowledgeBase.objects.get().embedding_model == OTHER


class _Gone(psycopg.OperationalError):
    sqlstate = "57P01"


class _Deadlock(psycopg.OperationalError):
    sqlstate = "40P01"


@pytest.mark.parametrize(
    ("error", "cause", "passes"),
    [
        (OperationalError, _Gone(), True),
        (OperationalError, _Deadlock(), True),
        (ProgrammingError, psycopg.errors.UndefinedTable(), False),
        (OperationalError, psycopg.errors.DiskFull(), False),
    ],
)
def test_only_an_outage_that_passes_is_tried_again(ingest, other, handbook, ann, monkeypatch, error, cause, passes):
    ingest("# A\n\nShort.")
    job = services.move_to_model(knowledge_base=handbook, model=OTHER, actor=ann)

    def broken(*args):
        raise error from cause

    with monkeypatch.context() as patch:
        patch.setattr(moving, "_embed", broken)
        if passes:
            with pytest.raises(error):
                advance_moves()
        else:
            advance_moves()
    job.refresh_from_db()
    codes = {True: "", False: "no_space" if isinstance(cause, psycopg.errors.DiskFull) else "database_failed"}
    assert (job.active, job.error_code) == (passes, codes[passes])
    if passes:
        turns()
        assert KnowledgeBase.objects.get().embedding_model == OTHER


def test_only_models_that_would_be_taken_are_offered(ingest, other, handbook, ann, bea, acme):
    ingest("# A\n\nShort.")
    handbook.refresh_from_db()
    own = ModelConfig.objects.get(workspace=acme)
    ModelConfig.objects.create(kind="embedding", name="other", base_url=other.url, configuration={"dimensions": 8})
    ModelConfig.objects.create(kind="embedding", name="odd", base_url=other.url, configuration={"dimensions": "many"})
    ModelConfig.objects.create(kind="embedding", name="off", base_url=other.url, enabled=False)
    own.restricted = True  # called before the operator's of the same name
    own.save()
    share(row=handbook, subject=Subject(user=bea), level="manage", actor=ann)

    def offered(who):
        return {model.reference for model in services.models_for(knowledge_base=handbook, actor=who)}

    assert offered(ann) - offered(bea) == {OTHER}
    assert handbook.embedding_model not in offered(ann)
    assert not offered(ann) & {"openai_compatible:odd", "openai_compatible:off"}
    for reference in offered(ann):
        assert moving._wanted(handbook, reference, ann).reference == reference
