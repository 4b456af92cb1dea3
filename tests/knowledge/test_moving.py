"""A base moved to another embedding model: the old one answers until the last passage is embedded."""

import pytest

from apps.common.errors import InvalidInput
from apps.knowledge import services
from apps.knowledge.errors import JobActive
from apps.knowledge.models import Chunk, ChunkVector, Document, Job, KnowledgeBase, NextVector
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import moving
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
